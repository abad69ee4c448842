# SPDX-License-Identifier: Apache-2.0

"""Sign-in, and buttons only for those who may use them."""

import pathlib
import shutil
import tempfile

from keystoneauth1 import fixture as keystoneauth_fixture
from keystonemiddleware import fixture as keystone_fixture

from vsched_api.tests import databases
from vsched_ui.tests import fleet
from vsched_ui.tests import page_case

FIRST = fleet.host_name(1)

#: Views, a text that is there once their data is, and what may be done there.
ACTIONS = (
    (
        '/instances/' + fleet.instance_uuid(1, 1),
        'Not again before',
        ('Change reservation', 'Freeze', '^Order$'),
    ),
    ('/hosts/%s?tab=error' % FIRST, 'p99 of |error|', ('Measure now',)),
    ('/hosts/%s?tab=overhead' % FIRST, 'packet received', ('Measure now',)),
    ('/balloons', 'reverted', ('Freeze', '^Order$')),
    ('/jobs', 'Error profile', ('Cancel',)),
)


class TestRoles(page_case.PageCase):
    """With tokens that keystonemiddleware accepts."""

    hosts = 3
    auth_strategy = 'keystone'

    @classmethod
    def configuration(cls):
        plain = super().configuration()
        folder = tempfile.mkdtemp(prefix='vsched-test-')
        cls.addClassCleanup(shutil.rmtree, folder)
        options = pathlib.Path(folder, 'vsched.conf')
        options.write_text(
            '[keystone_authtoken]\n'
            'www_authenticate_uri = http://127.0.0.1:5000\n'
        )
        conf = databases.configuration(
            plain.database.connection, '--config-file', str(options)
        )
        for name in ('auth_strategy', 'host_down_after_s'):
            conf.set_override(name, getattr(plain.api, name), 'api')
        return conf

    def setUp(self):
        super().setUp()
        self.tokens = self.useFixture(keystone_fixture.AuthTokenFixture())

    def token(self, *roles, system=False):
        data = keystoneauth_fixture.V3Token()
        if system:
            data.set_system_scope()
        else:
            data.set_project_scope()
        for role in roles:
            data.add_role(role)
        return self.tokens.add_token(data)

    def sign_in(self, token, path=''):
        tab = self.tab(path)
        tab.page.get_by_label('Token').fill(token)
        self.button(tab, 'Sign in').click()
        return tab

    def test_a_token_is_asked_for(self):
        tab = self.tab('/hosts')
        self.see_heading(tab, 'vsched')
        self.check(tab)
        tab.page.get_by_label('Token').fill('not-a-token')
        self.button(tab, 'Sign in').click()
        self.see(tab, 'The token is not valid, or has expired', exact=False)
        tab.page.get_by_label('Token').fill(self.token('admin'))
        self.button(tab, 'Sign in').click()
        # The view that was asked for.
        self.see_heading(tab, 'Hosts')
        self.see(tab, FIRST)
        # Until the tab is closed, and no longer.
        tab.page.reload()
        self.see(tab, FIRST)
        self.assertEqual(
            '{}', tab.page.evaluate('JSON.stringify(localStorage)')
        )
        self.button(tab, 'Sign out').click()
        tab.page.get_by_label('Token').wait_for()
        self.assertEqual(
            '{}', tab.page.evaluate('JSON.stringify(sessionStorage)')
        )
        self.check(tab)

    def test_buttons_are_for_those_who_may_use_them(self):
        admin = self.token('admin')
        started = self.request(
            'POST',
            '/v1/hosts/%s/profiles/error' % FIRST,
            json={},
            headers={'X-Auth-Token': admin},
        )
        self.assertEqual(202, started.status_code, started.text)
        for token, may in (
            (admin, True),
            (self.token('reader', system=True), False),
        ):
            tab = self.sign_in(token)
            self.see_heading(tab, 'What is wrong')
            for path, text, names in ACTIONS:
                self.go(tab, path)
                self.see(tab, text, exact=False)
                self.wait_for_data(tab)
                for name in names:
                    with self.subTest(path, name=name, may=may):
                        found = self.button(tab, name)
                        if may:
                            found.first.wait_for()
                        else:
                            self.assertEqual(0, found.count())
                self.check(tab)

    def test_a_user_without_a_role_is_refused(self):
        tab = self.sign_in(self.token('member'), '/hosts')
        self.see(tab, 'Not allowed')
        self.see(tab, 'policy vsched:hosts:list', exact=False)

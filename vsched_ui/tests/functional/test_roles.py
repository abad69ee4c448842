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
from vsched_ui.tests import views

FIRST = fleet.host_name(1)

MEASURE = ['Measure now, quickly', 'Measure thoroughly']
#: Of each view of VIEWS where something may be done, the names of what does
#: it.
ACTIONS = {
    '/instances/' + fleet.instance_uuid(1, 1): [
        'Change reservation',
        'Freeze',
        'Order',
    ],
    '/hosts/%s?tab=error' % FIRST: MEASURE,
    '/hosts/%s?tab=overhead' % FIRST: MEASURE,
    '/balloons': ['Freeze', 'Order'],
    '/jobs': ['Cancel'],
}
#: Buttons with a frame or as links; those of tables, tabs, pages and groups
#: are of other kinds. Those marked so read only.
BUTTONS = (
    'main button:is(.pf-m-primary,.pf-m-secondary,.pf-m-danger,.pf-m-link)'
    ':not(.vs-read)'
)


class TestRoles(page_case.PageCase):
    """With tokens that keystonemiddleware accepts."""

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

    def actions(self, tab):
        """Return the names of what changes something, once each."""
        return sorted(
            set(
                tab.page.locator(BUTTONS)
                .filter(visible=True)
                .all_inner_texts()
            )
        )

    def order(self):
        """Order a job of a host that does not answer, if there is none."""
        answer = self.request(
            'POST',
            '/v1/hosts/%s/profiles/error' % fleet.host_name(5),
            json={},
            headers={'X-Auth-Token': self.token('admin')},
        )
        self.assertIn(answer.status_code, (202, 409), answer.text)

    def see_all_views(self, token):
        """Load each view as one user, in one tab.

        :returns: of each view its tab and its path, once it has its data.
        """
        self.order()
        tab = self.sign_in(token)
        self.see_heading(tab, 'What is wrong')
        for path, (heading, text) in views.PATHS.items():
            self.go(tab, path)
            self.see_heading(tab, heading)
            self.see(tab, text, exact=False)
            self.wait_for_data(tab)
            yield tab, path

    def test_buttons_are_for_those_who_may_use_them(self):
        found = {}
        for tab, path in self.see_all_views(self.token('admin')):
            found[path] = self.actions(tab)
            self.assertEqual(
                'Order' in found[path],
                tab.page.get_by_label('vCPUs for ').count() > 0,
                path,
            )
        self.assertEqual(
            {path: ACTIONS.get(path, []) for path in views.PATHS}, found
        )

    def test_a_reader_has_none_of_them(self):
        reader = self.token('reader', system=True)
        for tab, path in self.see_all_views(reader):
            self.assertEqual([], self.actions(tab), path)
            self.assertEqual(
                0, tab.page.get_by_label('vCPUs for ').count(), path
            )
            self.check(tab)

    def test_a_user_without_a_role_is_refused(self):
        tab = self.sign_in(self.token('member'), '/hosts')
        self.see(tab, 'Not allowed')
        self.see(tab, 'policy vsched:hosts:list', exact=False)

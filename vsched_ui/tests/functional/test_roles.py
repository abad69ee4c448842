# SPDX-License-Identifier: Apache-2.0

"""Sign-in, and buttons only for those who may use them."""

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


class TestRoles(page_case.KeystoneCase):
    def test_a_token_is_asked_for(self):
        tab = self.tab('/hosts')
        self.see_heading(tab, 'vsched')
        self.check(tab)
        self.enter(tab, 'not-a-token')
        self.see(tab, 'The token is not valid, or has expired', exact=False)
        self.enter(tab, self.token('admin'))
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
            # Rights, and what is ordered, are read without a sign of it.
            self.wait_for(
                lambda tab=tab, path=path: (
                    self.actions(tab) == ACTIONS.get(path, [])
                )
            )
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

# SPDX-License-Identifier: Apache-2.0

"""The views of a user who may read the instances of one project only."""

from vsched_ui.tests import fleet
from vsched_ui.tests import host_reports
from vsched_ui.tests import page_case

OWN, OTHER = host_reports.PROJECTS

#: Of each view that such a user may not read, the path, the title, and the
#: policy.
REFUSED = (
    ('/hosts', 'Hosts', 'vsched:hosts:list'),
    ('/hosts/' + fleet.host_name(1), 'Hosts', 'vsched:hosts:show'),
    ('/whatif', 'What if', 'vsched:evaluations:create'),
    ('/events', 'Events', 'vsched:events:list'),
    ('/jobs', 'Jobs', 'vsched:jobs:list'),
    ('/evidence', 'Evidence', 'vsched:snapshot:show'),
)

#: How often the page reads a reservation again before a test concludes that
#: nothing that is read as often is refused.
POLLS = 3


class TestReads(page_case.KeystoneCase):
    hosts = 3
    instances = 4

    def setUp(self):
        super().setUp()
        self.answers = []

    def sign_in(self, token, path=''):
        tab = self.tab(path)
        tab.page.on(
            'response',
            lambda answer: self.answers.append((answer.status, answer.url)),
        )
        self.enter(tab, token)
        return tab

    def reader(self, path=''):
        """Return a tab of a member of a project, who may read there, too."""
        return self.sign_in(self.token('member', 'reader', project=OWN), path)

    def requests(self, part):
        """Return the addresses with a part that were requested."""
        return [url for _, url in self.answers if part in url]

    def check(self, tab):
        """Fail if the page has errors, or was refused anything."""
        super().check(tab)
        self.assertEqual(
            [], [one for one in self.answers if one[0] in (401, 403)]
        )

    def menu(self, tab):
        """Return the titles of the menu."""
        return tab.page.get_by_role('navigation', name='Views').get_by_role(
            'link'
        )

    def column(self, tab, title):
        """Return the texts of a column of the only table."""
        cells = tab.page.locator('td[data-label="%s"]' % title)
        cells.first.wait_for()
        return cells.all_inner_texts()

    def linked(self, tab):
        """Return the UUIDs of the instances that the view links to."""
        return {
            link.rpartition('/')[2]
            for link in tab.page.locator(
                'main td a[href*="/instances/"]'
            ).evaluate_all('all => all.map((one) => one.href)')
        }

    def own(self):
        """Return the UUIDs of the project's instances."""
        return {
            fleet.instance_uuid(host, number)
            for host in range(1, self.hosts + 1)
            for number in range(1, self.instances + 1)
            if host_reports.PROJECTS[(number - 1) % len(host_reports.PROJECTS)]
            == OWN
        }

    def test_the_menu_has_what_may_be_read(self):
        tab = self.reader()
        # The page itself leads to the first view that may be read.
        self.see_heading(tab, 'Reservations')
        self.chromium.expect(self.menu(tab)).to_have_text(
            ['Reservations', 'Balloons']
        )
        self.check(tab)
        self.menu(tab).nth(1).click()
        self.see_heading(tab, 'Balloons')
        self.check(tab)

    def test_balloons(self):
        tab = self.reader('/balloons')
        self.see(
            tab,
            'Instances of your project that may be left with fewer vCPUs, '
            'and those with an order.',
            exact=False,
        )
        self.see(
            tab,
            'What was done to them before is not shown: policy '
            'vsched:balloons:history does not allow it.',
            exact=False,
        )
        self.column(tab, 'Host')
        for what in (
            tab.page.get_by_role('heading', name='History', exact=True),
            tab.page.get_by_role('heading', name='Not allowed'),
            tab.page.get_by_label('Read the history of this server'),
        ):
            self.assertEqual(0, what.count())
        self.assertEqual([], self.requests('/v1/balloons/history'))
        self.check(tab)

    def test_balloons_of_all_projects(self):
        tab = self.sign_in(self.token('reader', system=True), '/balloons')
        self.see_heading(tab, 'History')
        self.see(tab, 'Instances that may be left', exact=False)
        self.assertEqual(0, tab.page.get_by_text('is not shown').count())
        self.check(tab)

    def test_only_own_instances_are_listed(self):
        tab = self.reader('/reservations')
        self.see_heading(tab, 'Reservations')
        # Where they run is not for them.
        self.assertEqual({'–'}, set(self.column(tab, 'Host')))
        self.assertEqual(self.own(), self.linked(tab))
        self.go(tab, '/balloons')
        self.column(tab, 'Host')
        # Not all of them may be ballooned.
        self.assertLessEqual(self.linked(tab), self.own())
        self.check(tab)

    def test_an_own_instance(self):
        tab = self.reader('/instances/' + fleet.instance_uuid(1, 1))
        self.see_heading(tab, 'Reserved and got')
        tab.page.get_by_role('img', name='got').first.wait_for()
        for section in ('History of balloons', 'Events'):
            self.assertFalse(
                tab.page.get_by_role(
                    'heading', name=section, exact=True
                ).count()
            )
        for _ in range(POLLS):
            with tab.page.expect_response(
                lambda answer: '/v1/reservations?' in answer.url
            ):
                pass
        self.assertEqual([], self.requests('/v1/events'))
        self.assertEqual([], self.requests('/v1/balloons/history'))
        self.check(tab)

    def test_an_instance_of_another_project(self):
        tab = self.reader('/instances/' + fleet.instance_uuid(1, 2))
        # As if there were none.
        self.see_heading(tab, 'Not found')
        self.assertFalse(tab.page.get_by_text(OTHER, exact=False).count())

    def test_other_views_are_refused_in_words(self):
        tab = self.reader()
        self.see_heading(tab, 'Reservations')
        for path, title, rule in REFUSED:
            self.go(tab, path)
            self.see_heading(tab, title)
            self.see_heading(tab, 'Not allowed')
            self.see(tab, 'policy %s does not allow it' % rule)
            self.see(tab, 'The menu has the views that may be read.')
            self.assertFalse(tab.page.locator('main .pf-m-danger').count())
            self.check(tab)
        self.assertEqual([], self.requests('/v1/hosts'))
        self.assertEqual([], self.requests('/v1/snapshot'))

    def test_who_may_read_nothing(self):
        tab = self.sign_in(self.token('member', project=OWN))
        self.see_heading(tab, 'Not allowed')
        self.see(tab, 'None of the views may be read with this token.')
        self.assertFalse(self.menu(tab).count())
        self.assertEqual([], tab.axe())
        # Nothing is tried: the session states it.
        self.assertEqual(
            [], [url for status, url in self.answers if status == 403]
        )

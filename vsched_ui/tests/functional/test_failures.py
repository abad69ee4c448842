# SPDX-License-Identifier: Apache-2.0

"""Lists of which a part could not be read, after others were."""

import re
import time

import ddt

from vsched_api.operations import announcements
from vsched_api.operations import jobs
from vsched_api.tests import base
from vsched_lib.contract import messages
from vsched_lib.tests import balloon_reports
from vsched_ui.tests import failing_case
from vsched_ui.tests import fleet
from vsched_ui.tests import page_case

HOST = fleet.host_name(1)
#: How many rows an answer has, and how many there are of each list.
PAGE, ROWS = 10, 25

#: Of each list the path of a view with it, its label, what it lists, and the
#: address that it is read from.
LISTS = (
    ('/events', 'Events', 'events', '/events'),
    ('/balloons', 'History of balloons', 'balloons', '/balloons/history'),
    ('/jobs', 'Jobs', 'jobs', '/jobs'),
)
#: Likewise, of a list without older rows.
RECENT = ('', 'Events', 'events', '/events')


@ddt.ddt
class TestLists(failing_case.FailingCase):
    """Lists with more rows than an answer has."""

    hosts = 1

    @classmethod
    def configuration(cls):
        conf = super().configuration()
        conf.set_override('max_limit', PAGE, 'api')
        return conf

    @classmethod
    def populate(cls):
        now = time.time()
        (host,) = cls.service.hosts
        times = [now - 10_000 - number for number in range(ROWS)]
        host.send(
            events=tuple(base.event(at) for at in times),
            balloon_changes=tuple(
                balloon_reports.change(
                    host.instances[0], started_at=at, ended_at=at + 1
                )
                for at in times
            ),
        )
        for at in reversed(times):
            job = jobs.create(
                cls.service.collector.database,
                announcements.Announcer(),
                HOST,
                messages.JobKind.PROFILE_OVERHEAD,
                {},
                at,
            )
            host.send(
                jobs=(
                    messages.JobReport(
                        job.uuid, 1, messages.JobState.DONE, 1_000_000, at, ''
                    ),
                )
            )

    def rows(self, tab, label):
        """Return the rows of a list."""
        return tab.page.get_by_role('grid', name=label, exact=True).locator(
            'tbody tr'
        )

    def wait_for_rows(self, tab, label, count):
        """Wait until a list has that many rows."""
        self.chromium.expect(self.rows(tab, label)).to_have_count(count)

    def problem(self, tab, text):
        """Return the failure with a text."""
        return tab.page.get_by_role('alert').filter(has_text=text)

    @ddt.data(*LISTS)
    @ddt.unpack
    def test_older_rows(self, path, label, noun, address):
        tab = self.still()
        self.go(tab, path)
        self.wait_for_rows(tab, label, PAGE)
        older = self.button(tab, 'Read older ' + noun)
        again = self.button(tab, 'Try again to read older ' + noun)
        problem = self.problem(tab, 'Older %s could not be read' % noun)
        with self.failing(tab, 400, address + r'\?.*marker='):
            older.click()
            problem.filter(has_text='as the test chose').filter(
                has_text='vsched.of.the.test'
            ).wait_for()
            again.click()
            self.chromium.expect(again).to_be_enabled()
            self.assertEqual(1, problem.count())
            # It is the only one, and what was read is still there.
            self.assertEqual(1, tab.page.get_by_role('alert').count())
            self.wait_for_rows(tab, label, PAGE)
            self.assertEqual([], tab.axe())
        again.click()
        self.wait_for_rows(tab, label, 2 * PAGE)
        self.chromium.expect(problem).to_have_count(0)
        self.chromium.expect(older).to_be_enabled()
        self.assertEqual([], page_case.other_errors(tab))

    @ddt.data(*LISTS, RECENT)
    @ddt.unpack
    def test_a_list_that_is_not_read_again(self, path, label, noun, address):
        tab = self.tab(path)
        self.wait_for_rows(tab, label, PAGE)
        problem = self.problem(tab, 'The newest %s could not be read' % noun)
        with self.failing(tab, 400, address + r'\?limit='):
            problem.filter(has_text='as the test chose').wait_for()
            with tab.page.expect_request(re.compile(address + r'\?limit=')):
                problem.get_by_role('button', name='Try again').click()
            self.assertEqual(1, problem.count())
            self.wait_for_rows(tab, label, PAGE)
            self.assertEqual([], tab.axe())
        # The next time it is.
        self.chromium.expect(problem).to_have_count(0)
        self.wait_for_rows(tab, label, PAGE)
        self.assertEqual([], page_case.other_errors(tab))

    def test_older_rows_while_newer_ones_are_not_read(self):
        tab = self.tab('/events')
        self.wait_for_rows(tab, 'Events', PAGE)
        older = self.problem(tab, 'Older events could not be read')
        newest = self.problem(tab, 'The newest events could not be read')
        with self.failing(tab, 400, r'/events\?.*marker='):
            self.button(tab, 'Read older events').click()
            older.wait_for()
            # That the others are read again does not mean that these were.
            with tab.page.expect_response(re.compile(r'/events\?limit=')):
                pass
            self.assertEqual(1, older.count())
            with self.failing(tab, 400, r'/events\?limit='):
                newest.wait_for()
            self.chromium.expect(newest).to_have_count(0)
            self.assertEqual(1, older.count())
        self.button(tab, 'Try again to read older events').click()
        self.wait_for_rows(tab, 'Events', 2 * PAGE)
        self.chromium.expect(older).to_have_count(0)

    def test_older_rows_while_an_event_comes_in(self):
        tab = self.tab('/events')
        self.wait_for_rows(tab, 'Events', PAGE)
        older = re.compile(r'/v1/events\?.*marker=')
        held = []

        def hold_the_first(route):
            if held:
                route.continue_()
            else:
                held.append(route)

        tab.page.route(older, hold_the_first)
        with tab.page.expect_request(older):
            self.button(tab, 'Read older events').click()
        # The list is read again because of it, which drops the request.
        with tab.page.expect_event(
            'requestfailed', lambda request: older.search(request.url)
        ):
            self.service.hosts[0].send(events=(base.event(time.time()),))
        self.wait_for_rows(tab, 'Events', 2 * PAGE)
        self.assertEqual(0, tab.page.get_by_role('alert').count())

    def test_try_again(self):
        self.service.measure(HOST)
        tab = self.still()
        self.go(tab, '/jobs')
        cancel = tab.page.get_by_role('button', name='Cancel')
        cancel.wait_for()
        problem = self.problem(tab, 'The newest jobs could not be read')
        with self.failing(tab, 400, r'/jobs\?'):
            # What it changes is read again, and nothing else is.
            cancel.click()
            problem.wait_for()
            self.chromium.expect(cancel).to_have_count(1)
        problem.get_by_role('button', name='Try again').click()
        self.chromium.expect(problem).to_have_count(0)
        self.chromium.expect(cancel).to_have_count(0)
        self.assertEqual([], page_case.other_errors(tab))

    def test_one_banner_for_all_lists(self):
        tab = self.tab('/events')
        self.wait_for_rows(tab, 'Events', PAGE)
        self.service.door.shut()
        try:
            self.banner(tab).wait_for()
            self.assertEqual(0, self.problem(tab, 'could not be read').count())
            self.button(tab, 'Read older events').click()
            # It is the answer to a click.
            self.problem(
                tab, 'Older events could not be read: there was no answer'
            ).wait_for()
            self.assertEqual([], tab.axe())
        finally:
            self.service.door.open()
        # Neither the banner nor the note of the list.
        self.chromium.expect(
            tab.page.get_by_text('The API does not answer.', exact=False)
        ).to_have_count(0)
        self.button(tab, 'Try again to read older events').click()
        self.wait_for_rows(tab, 'Events', 2 * PAGE)
        self.chromium.expect(
            self.problem(tab, 'could not be read')
        ).to_have_count(0)

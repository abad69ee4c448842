# SPDX-License-Identifier: Apache-2.0

"""What is wrong in a fleet, and the lists that have all of it."""

import re
import time

import ddt

from vsched_api.collector import endpoint
from vsched_api.operations import announcements
from vsched_api.operations import jobs
from vsched_api.tests import base
from vsched_lib.contract import messages
from vsched_lib.contract import placement as names
from vsched_ui.tests import fleet
from vsched_ui.tests import host_reports
from vsched_ui.tests import page_case

#: How many hosts do not report, how many have no backend that can be used,
#: with how many placement has failed, and how many have findings of the
#: doctor with a problem among them; they are numbered in this order, but for
#: the first one that does not report: it has such findings as well.
DOWN, UNUSABLE, UNPLACED, FOUND = 20, 9, 2, 6
#: The host of the instances.
HOST = 50
REFUSED, DEGRADED, APPLIED = 30, 8, 3
FAILED_JOBS = 7

#: Of each kind of trouble that there is no room for, the words after its
#: count, the filter of its list, the list's label and how many it has.
CUT = (
    ('hosts that do not report', '/hosts?hosts.state=down', 'Hosts', DOWN),
    (
        'hosts without a usable backend',
        '/hosts?hosts.trouble=no+backend',
        'Hosts',
        UNUSABLE,
    ),
    (
        'refused reservations',
        '/reservations?reservations.state=refused',
        'Reservations',
        REFUSED,
    ),
    (
        'degraded reservations',
        '/reservations?reservations.state=degraded',
        'Reservations',
        DEGRADED,
    ),
    (
        'hosts with a problem that their doctor found',
        '/hosts?hosts.trouble=finding',
        'Hosts',
        FOUND,
    ),
    ('failed jobs', '/jobs?jobs.state=failed', 'Jobs', FAILED_JOBS),
)
#: Room for all of them.
MOST = 12
PAGE = 25


@ddt.ddt
class TestTroubles(page_case.PageCase):
    """More than there is room for."""

    hosts = 0

    @classmethod
    def configuration(cls):
        cls.conf = super().configuration()
        return cls.conf

    @classmethod
    def populate(cls):
        now = time.time()
        collector = cls.service.collector
        earlier = now - fleet.SILENT_S
        late = endpoint.Collector(cls.conf, now=lambda: earlier)
        cls.addClassCleanup(late.database.dispose)
        for number in range(1, DOWN + 1):
            fleet.Host(late, number, 0, earlier).first()
        for number in range(DOWN + 1, DOWN + UNUSABLE + 1):
            cls.report(
                fleet.Host(collector, number, 0, now),
                backends=tuple(
                    messages.BackendInfo(name, False, ('not by this kernel',))
                    for name in ('deadline', 'cfs')
                ),
                placement=names.PlacementInfo(names.PlacementState.OFF),
            )
        first = DOWN + UNUSABLE + 1
        for number in range(first, first + UNPLACED):
            cls.report(
                fleet.Host(collector, number, 0, now),
                placement=names.PlacementInfo(
                    names.PlacementState.FAILED, 'no answer'
                ),
            )
        first += UNPLACED
        for number in range(first, first + FOUND - 1):
            cls.report(
                fleet.Host(collector, number, 0, now),
                findings=host_reports.FINDINGS,
            )
        # A note alone is nothing wrong.
        cls.report(
            fleet.Host(collector, first + FOUND - 1, 0, now),
            findings=host_reports.FINDINGS[:1],
        )
        host = fleet.Host(
            collector, HOST, REFUSED + DEGRADED + APPLIED, now, False
        )
        host.first()
        refused = host.instances[:REFUSED]
        degraded = host.instances[REFUSED : REFUSED + DEGRADED]
        host.send(
            reservations=tuple(
                cls.reservation(
                    uuid,
                    now,
                    messages.State.REFUSED
                    if uuid in refused
                    else messages.State.DEGRADED
                    if uuid in degraded
                    else messages.State.APPLIED,
                )
                for uuid in host.instances
            )
        )
        for number in range(FAILED_JOBS + 1):
            job = jobs.create(
                collector.database,
                announcements.Announcer(),
                host.name,
                messages.JobKind.PROFILE_ERROR,
                {},
                now - 1_000 + number,
            )
            host.send(
                jobs=(
                    messages.JobReport(
                        job.uuid,
                        1,
                        messages.JobState.FAILED
                        if number < FAILED_JOBS
                        else messages.JobState.DONE,
                        0,
                        now - 900 + number,
                        'the guest ended',
                    ),
                )
            )

    @staticmethod
    def report(host, **info):
        """Report a host with some information of its own."""
        host.send(host_info=base.host_info(**info))

    @staticmethod
    def reservation(uuid, now, state):
        """Return a report of a reservation in a state."""
        return base.reservation(
            uuid,
            vcpus=2,
            since=now - 60,
            attested_at=now,
            state=state,
            detail=None
            if state is messages.State.APPLIED
            else 'as the test chose',
            code=None
            if state is messages.State.APPLIED
            else 'vsched.backend.unavailable',
        )

    def open(self):
        """Open the overview; return its tab and what is wrong."""
        tab = self.tab()
        wrong = tab.page.get_by_role('region', name='What is wrong')
        # Each list was read.
        for words, *_ in CUT:
            wrong.get_by_role('link', name=words).wait_for()
        return tab, wrong

    def test_each_kind_has_room(self):
        tab, wrong = self.open()
        self.check(tab)
        rows = wrong.get_by_role('listitem')
        links = rows.get_by_role('link', name='more')
        expect = self.chromium.expect
        expect(rows).to_have_count(MOST + len(CUT))
        expect(links).to_have_count(len(CUT))
        counts = [int(text.split()[1]) for text in links.all_inner_texts()]
        every = (
            DOWN
            + UNUSABLE
            + UNPLACED
            + FOUND
            + REFUSED
            + DEGRADED
            + FAILED_JOBS
        )
        self.assertEqual(every - MOST, sum(counts))
        expect(
            rows.filter(has_text='the doctor found 1 problem')
        ).to_have_count(1)
        # All that there are few of.
        expect(rows.filter(has_text='placement: no answer')).to_have_count(
            UNPLACED
        )
        # The errors come first.
        states = rows.locator('.pf-v6-c-label').all_inner_texts()
        self.assertEqual(sorted(states), states)
        self.assertEqual({'error', 'warning'}, set(states))

    @ddt.data(*CUT)
    @ddt.unpack
    def test_the_link_has_all_of_a_kind(self, words, address, label, count):
        tab, wrong = self.open()
        link = wrong.get_by_role('link', name=words)
        self.assertRegex(link.inner_text(), r'^and \d+ more %s$' % words)
        link.click()
        tab.page.wait_for_url(re.compile(re.escape('/ui' + address) + '$'))
        rows = tab.page.get_by_role('grid', name=label, exact=True).locator(
            'tbody tr'
        )
        self.chromium.expect(rows).to_have_count(min(PAGE, count))
        # The pages of the list have the number of all of them.
        self.chromium.expect(
            tab.page.locator('.pf-v6-c-pagination').first
        ).to_contain_text('of %d' % count)
        self.check(tab)

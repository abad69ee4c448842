# SPDX-License-Identifier: Apache-2.0

"""The ranges of the charts of an instance."""

import datetime
import re
import time

import ddt

from vsched_api.operations import rollups
from vsched_api.tests import base
from vsched_lib.contract import messages
from vsched_ui.tests import fleet
from vsched_ui.tests import page_case

INSTANCE = fleet.instance_uuid(1, 1)
SERVER = 'ranged'
HOUR_S = 3_600
#: When it was used: how long ago in seconds, and how many CPUs it got.
USED = ((30 * 60, 0.30), (5 * HOUR_S, 0.20), (3 * 24 * HOUR_S, 0.10))
#: How many seconds it was used for, each time.
SECONDS = 20
RESERVED = 0.4
#: Of each range what it sums by, its length in seconds, and how many CPUs
#: it got on average: of the times that are in it.
RANGES = (
    ('1 h', 'minute', HOUR_S, 0.30),
    ('6 h', 'minute', 6 * HOUR_S, 0.25),
    ('7 d', 'hour', 7 * 24 * HOUR_S, 0.20),
)


@ddt.ddt
class TestRanges(page_case.PageCase):
    """Sums by minute and by hour."""

    hosts = 0

    @classmethod
    def populate(cls):
        host = cls.add_host(
            1,
            messages.InstanceInfo(
                INSTANCE, 'instance-00000001', 2, server_name=SERVER
            ),
        )
        now = time.time()
        for ago_s, got in USED:
            host.send(
                usage=tuple(
                    base.sample(
                        INSTANCE,
                        now - ago_s + second,
                        guest_us=round(got * 1_000_000),
                        promised_us=round(RESERVED * 1_000_000),
                    )
                    for second in range(SECONDS)
                )
            )
        rollups.fold(cls.service.collector.database, 10_000)

    def open(self):
        tab = self.tab('/instances/' + INSTANCE)
        # Nothing of it is in the range that is shown first.
        self.see(tab, 'No usage in this range')
        return tab

    def choose(self, tab, name):
        """Choose a range; return the query that it is read with."""
        # Not one for seconds, which go on until then.
        with tab.page.expect_request(
            re.compile(r'/v1/usage\?.*resolution=(?!raw)')
        ) as found:
            self.button(tab, '^%s$' % name).click()
        return found.value.url

    @ddt.data(*RANGES)
    @ddt.unpack
    def test_a_range_has_its_sums(self, name, resolution, length_s, got):
        tab = self.open()
        asked = self.choose(tab, name)
        self.assertIn('instance_uuid=' + INSTANCE, asked)
        self.assertIn('resolution=' + resolution, asked)
        start = re.search('start=([^&]*)', asked).group(1)
        self.assertAlmostEqual(
            time.time() - length_s,
            datetime.datetime.fromisoformat(
                start.replace('%3A', ':')
            ).timestamp(),
            # What was shown first was read meanwhile.
            delta=2 * page_case.browser.PATIENCE_S,
        )
        self.see(tab, 'Sums by %s.' % resolution)
        for label in (
            'CPU time of %s over %s: got %.2f CPU on average, '
            'reserved %.2f CPU' % (SERVER, name, got, RESERVED),
            'CPU time that the host used for %s over %s' % (SERVER, name),
        ):
            chart = tab.page.get_by_role('img', name=label, exact=True)
            chart.wait_for()
            # It is drawn, not only named.
            chart.locator('canvas').first.wait_for()
        self.see(tab, '%.2f CPU' % got, exact=False)
        self.check(tab)

    def test_back_to_seconds(self):
        tab = self.open()
        self.choose(tab, '7 d')
        self.see(tab, 'Sums by hour.')
        self.button(tab, '^5 min$').click()
        self.see(tab, 'By second, as the agent reports it.')
        self.see(tab, 'No usage in this range')
        self.check(tab)

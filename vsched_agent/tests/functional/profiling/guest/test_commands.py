# SPDX-License-Identifier: Apache-2.0
"""What guests of our own say of themselves."""

from oslotest import base as test_base

from vsched_agent.profiling.guest import domain_xml
from vsched_agent.tests import fixtures
from vsched_agent.tests import guest_calls


class ClockSourceTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        fixtures.require_libvirt(self)

    def test_the_guest_reads_the_tsc(self):
        guest = self.useFixture(fixtures.Guest(vcpus=2))
        self.assertEqual(
            domain_xml.CLOCK_SOURCE, guest_calls.clock_source(guest.handle)
        )

    def test_a_guest_with_another_clock_is_found_out(self):
        guest = self.useFixture(
            fixtures.Guest(cmdline='console=ttyS0 quiet clocksource=hpet')
        )
        self.assertEqual('hpet', guest_calls.clock_source(guest.handle))

# SPDX-License-Identifier: Apache-2.0

"""Reservations given, changed and taken back leave nothing behind."""

from oslotest import base

from vsched_agent.tests import fixtures
from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_cycles


class TestCycles(base.BaseTestCase):
    """The long run is a benchmark; see benchmarks/cycles.py."""

    CYCLES = 10

    def setUp(self):
        super().setUp()
        fixtures.require_libvirt(self)
        self.addCleanup(
            agent_case.assert_as_found, agent_case.HostState.look()
        )

    def _cycles(self, load):
        figures = agent_cycles.measure(load, self.CYCLES)
        self.assertEqual(self.CYCLES, figures.cycles)
        self.assertEqual(0, figures.leaked_units, figures)
        self.assertGreater(figures.heartbeats, self.CYCLES)
        # What the machine under this one takes is no fault of vsched, nor is
        # how long a guest takes for a heartbeat on a slow one.
        self.assertLess(
            figures.longest_standstill_s,
            max(1.0, 10 * figures.median_heartbeat_s) + figures.stolen_s,
            figures,
        )

    def test_idle(self):
        self._cycles('idle')

    def test_busy(self):
        self._cycles('burn')

# SPDX-License-Identifier: Apache-2.0

"""Samples of the error, from a guest that burns under a promise."""

import time

from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import profiles

#: Until threads that were watched are left and a profile is due.
_PATIENCE_S = 90.0


class TestLive(agent_case.AgentCase):
    GUESTS = {
        'burning': {
            'load': 'burn',
            'extra_specs': {
                'vsched:cpu_runtime_us': '12000',
                'vsched:cpu_period_us': '20000',
            },
        },
        'idle': {
            'load': 'idle',
            'extra_specs': {'vsched:cpu_runtime_us': '4000'},
        },
    }

    def test_a_guest_that_burns_shows_the_error(self):
        self.restart_agent(interval=1.0, profiling__live_interval=10.0)
        mark = self.collector.mark()
        began_s, stolen_s = time.monotonic(), agent_guests.stolen_s()
        profile = self.collector.await_news(
            lambda: next(
                (
                    one
                    for report in self.collector.reports[mark:]
                    for one in report.error_profiles
                ),
                None,
            ),
            'a profile from production',
            _PATIENCE_S,
        )
        self.assertEqual(profiles.ProfileSource.LIVE, profile.source)
        # The guest that sleeps wanted nothing, and shows nothing.
        (point,) = profile.points
        self.assertEqual(
            ('deadline', 20_000, 600_000, profiles.Probe.VCPU),
            (point.backend, point.period_us, point.share_ppm, point.probe),
        )
        self.assertGreater(point.n, 5)
        # As this host's benchmark finds as well; the machine under it may
        # have taken both CPUs' time from this guest.
        stolen = (agent_guests.stolen_s() - stolen_s) / (
            time.monotonic() - began_s
        )
        self.assertLess(abs(point.mean_ppm), 20_000 + 1e6 * stolen / 0.6)

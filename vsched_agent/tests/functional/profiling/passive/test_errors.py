# SPDX-License-Identifier: Apache-2.0

"""Samples of the error, from a guest that burns under a promise."""

from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import profiles

#: Until threads that were watched are left and a profile is due: half a minute
#: where the guest is given its time, and longer where others take it.
_PATIENCE_S = 240.0
#: Fewer samples show little.
_SAMPLES = 6


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
        stolen_s = agent_guests.stolen_s()
        self.restart_agent(interval=1.0, profiling__live_interval=10.0)
        mark = self.collector.mark()
        # A profile is due at times, with the samples that there are by then.
        # They accumulate.
        profile = self.collector.await_news(
            lambda: next(
                (
                    one
                    for report in self.collector.reports[mark:]
                    for one in report.error_profiles
                    if sum(point.n for point in one.points) >= _SAMPLES
                ),
                None,
            ),
            'a profile from production with %d samples' % _SAMPLES,
            _PATIENCE_S,
        )
        self.assertEqual(profiles.ProfileSource.LIVE, profile.source)
        # The guest that sleeps wanted nothing, and shows nothing.
        (point,) = profile.points
        self.assertEqual(
            ('deadline', 20_000, 600_000, profiles.Probe.VCPU),
            (point.backend, point.period_us, point.share_ppm, point.probe),
        )
        self.assertGreaterEqual(point.n, _SAMPLES)
        # As this host's benchmark finds as well; the machine under it may
        # have taken both CPUs' time from this guest, all of it in the seconds
        # that are samples.
        stolen = (agent_guests.stolen_s() - stolen_s) / point.n
        self.assertLess(abs(point.mean_ppm), 20_000 + 1e6 * stolen / 0.6)

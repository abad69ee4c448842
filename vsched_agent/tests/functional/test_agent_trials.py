# SPDX-License-Identifier: Apache-2.0

from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import errors
from vsched_lib.model import balloon_trial

Code = errors.Code

#: Shorter than the defaults; the thresholds are the defaults.
OPTIONS = {
    'interval': 1.0,
    'ballooning__settle': 1.0,
    'ballooning__trial': 4.0,
    'ballooning__cooldown': 3.0,
}
#: More rounds than any test waits for.
ENDLESS = 100_000_000
PATIENCE_S = 120.0


class TestTrials(agent_case.AgentCase):
    """Guests whose work gains or loses by fewer vCPUs."""

    GUESTS = {
        name: {
            'vcpus': 4,
            'memory_mib': 192,
            'extra_specs': {'vsched:balloon': 'auto'},
        }
        for name in ('memory', 'pipeline')
    }

    def work(self, kind):
        """Have a guest work until the end of the test."""
        vm = self.vms[kind]
        vm.execute(
            '/bin/sh',
            '-c',
            'exec vsched-work %s 4 %d >/dev/null' % (kind, ENDLESS),
        )
        self.addCleanup(
            vm.execute, '/bin/sh', '-c', 'killall -KILL vsched-work'
        )

    def verdict(self, kind, mark):
        """Return the first event that ends a guest's trial."""
        ends = (Code.BALLOON_KEPT, Code.BALLOON_RETURNED)
        return self.collector.await_news(
            lambda: next(
                (
                    event
                    for event in self.collector.events(
                        mark, self.vms[kind].uuid
                    )
                    if event.code in ends
                ),
                None,
            ),
            'end of the trial of %s' % kind,
            PATIENCE_S,
        )

    def test_gainer_is_kept_and_loser_reverted(self):
        agent_guests.require_clock_source(list(self.vms.values()))
        mark = self.collector.mark()
        self.restart_agent(**OPTIONS)
        for kind in self.vms:
            self.work(kind)
        kept = self.verdict('memory', mark)
        self.assertEqual(Code.BALLOON_KEPT, kept.code, kept.detail)
        lost = self.verdict('pipeline', mark)
        self.assertEqual(Code.BALLOON_RETURNED, lost.code, lost.detail)
        self.assertEqual(
            balloon_trial.Outcome.REVERTED, lost.figures['outcome'], lost
        )

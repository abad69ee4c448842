# SPDX-License-Identifier: Apache-2.0

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time

from vsched_agent.host import schedstat
from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_fixture
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import errors

Code = errors.Code

#: Quick enough for a test; every other threshold is the default. These
#: guests have no counter, and are to stay as they are after the trial.
QUICK = {
    'ballooning__unknown': 'keep',
    'ballooning__settle': 1.0,
    'ballooning__trial': 2.0,
    'ballooning__calm': 2.0,
    'ballooning__cooldown': 3.0,
}
#: No vCPU stays away for longer than that after a recovery, in seconds.
RECOVERY_S = 180.0
#: What a guest's console has once it did what a test asked for.
_DONE = 'vsched-test-done'


class BalloonCase(agent_case.AgentCase):
    """Two guests on two CPUs, four busy vCPUs each."""

    GUESTS = {
        'reserved': {
            'load': 'burn',
            'vcpus': 4,
            'memory_mib': 128,
            'extra_specs': {
                'vsched:balloon': 'auto',
                'vsched:cpu_runtime_us': '4000',
            },
        },
        'plain': {
            'load': 'burn',
            'vcpus': 4,
            'memory_mib': 128,
            'extra_specs': {'vsched:balloon': 'auto'},
        },
    }

    def setUp(self):
        super().setUp()
        self.reserved, self.plain = (
            self.vms[name] for name in ('reserved', 'plain')
        )

    def online(self, vm):
        """The vCPUs that a guest uses, by what its threads do."""
        before = [schedstat.read(tid).run_ns for tid in vm.vcpu_tids]
        agent_guests.pause(0.5)
        after = [schedstat.read(tid).run_ns for tid in vm.vcpu_tids]
        return [
            index
            for index, (one, two) in enumerate(zip(before, after, strict=True))
            if two - one > 10_000_000
        ]

    def eventually(self, look, what, patience_s=agent_fixture.PATIENCE_S):
        give_up = time.monotonic() + patience_s
        while not look():
            if time.monotonic() > give_up:
                self.fail(
                    'never came: %s; events: %s'
                    % (
                        what,
                        [
                            (event.code, event.detail)
                            for event in self.collector.events()
                        ],
                    )
                )
            agent_guests.pause(0.2)

    def execute(self, vm, script):
        """Have a guest run a script; returns once it has got so far."""
        done = _DONE.encode()
        before = vm.console().count(done)
        vm.execute('/bin/sh', '-c', script)
        self.eventually(
            lambda: vm.console().count(done) > before, 'what the guest does'
        )

    def balloon(self, **options):
        """Have the agent balloon, for the length of a test."""
        mark = self.collector.mark()
        self.addCleanup(self.await_full)
        self.restart_agent(**{**QUICK, **options})
        for vm in self.vms.values():
            self.agent.await_event(Code.BALLOON_TAKEN, vm.uuid, mark)
        return mark

    def await_full(self, patience_s=agent_fixture.PATIENCE_S):
        for vm in self.vms.values():
            self.eventually(
                lambda vm=vm: self.online(vm) == [0, 1, 2, 3],
                'all vCPUs of %s' % vm.spec.name,
                patience_s,
            )

    def await_taken(self):
        """All that was promised is held, by the vCPU that is left."""
        self.eventually(
            lambda: (
                self.reserved.held() == [(16_000, 20_000), None, None, None]
            ),
            'the whole promise in one vCPU',
        )

    def assert_promised(self):
        """All that was promised is held, by four vCPUs."""
        self.eventually(
            lambda: self.reserved.held() == [(4_000, 20_000)] * 4,
            'the reservation of all vCPUs',
        )

    def assert_unbound(self):
        """Every vCPU may run anywhere, soon after all are there."""
        everywhere = set(range(os.cpu_count()))
        self.eventually(
            lambda: all(
                os.sched_getaffinity(tid) == everywhere
                for vm in self.vms.values()
                for tid in vm.vcpu_tids
            ),
            'the freedom of all vCPUs',
        )


class TestBalloons(BalloonCase):
    def test_taken_bound_and_given_back(self):
        mark = self.balloon()
        self.eventually(lambda: self.online(self.reserved) == [0], 'one vCPU')
        # 0.8 CPUs, as before, and nothing for those that are offline.
        self.await_taken()
        bound = []

        def apart():
            bound[:] = [
                os.sched_getaffinity(vm.vcpu_tids[0])
                for vm in (self.reserved, self.plain)
            ]
            return [len(cpus) for cpus in bound] == [1, 1] and (
                bound[0] != bound[1]
            )

        self.eventually(apart, 'a CPU for each')
        taken = self.agent.await_event(
            Code.BALLOON_TAKEN, self.reserved.uuid, mark
        )
        self.assertEqual(
            (1, 4), (taken.figures['vcpus'], taken.figures['configured'])
        )
        self.agent.await_event(Code.BALLOON_KEPT, self.reserved.uuid, mark)
        # A change of the promise reaches the vCPU that is left.
        self.override(self.reserved, 2_000)
        self.eventually(
            lambda: self.reserved.held()[0] == (8_000, 20_000),
            'the new promise',
        )
        # A thread is on all CPUs for a moment when its reservation changes.
        self.eventually(
            lambda: (
                os.sched_getaffinity(self.reserved.vcpu_tids[0]) == bound[0]
            ),
            'the same CPU',
        )
        self.end_override(self.reserved)
        self.agent.stop()
        self.await_full()
        self.assertEqual([(4_000, 20_000)] * 4, self.reserved.held())
        self.assert_unbound()
        self.agent.start()

    def test_promised_while_it_was_bound(self):
        self.balloon()
        self.eventually(
            lambda: len(os.sched_getaffinity(self.plain.vcpu_tids[0])) == 1,
            'a CPU of its own',
        )
        self.override(self.plain, 2_000)
        self.eventually(
            lambda: self.plain.held() == [(8_000, 20_000), None, None, None],
            'the promise',
        )
        # This one would take none.
        self.restart_agent(**{**QUICK, 'ballooning__wait_share': 1.0})
        self.await_full()
        self.eventually(
            lambda: self.plain.held() == [(2_000, 20_000)] * 4,
            'the promise in all vCPUs',
        )
        self.end_override(self.plain)
        self.eventually(
            lambda: self.plain.held() == [None] * 4, 'the end of it'
        )
        # Not where it was when it was promised something.
        self.assert_unbound()

    def test_dry_run_takes_nothing(self):
        mark = self.collector.mark()
        self.restart_agent(**{**QUICK, 'ballooning__mode': 'dry_run'})
        self.agent.await_event(Code.BALLOON_PROPOSED, None, mark)
        self.assertEqual(
            [], self.collector.events(mark, code=Code.BALLOON_TAKEN)
        )
        self.await_full()

    def test_a_reboot_in_mid_balloon(self):
        mark = self.balloon(ballooning__cooldown=60)
        self.eventually(lambda: self.online(self.reserved) == [0], 'one vCPU')
        readies = self.reserved.readies()
        self.reserved.handle.reset()
        try:
            self.reserved.await_readies(readies + 1)
        except AssertionError:
            # The other tests share it.
            self.reserved.handle.reset()
            self.reserved.await_readies(readies + 1)
            raise
        self.agent.await_event(Code.BALLOON_RETURNED, self.reserved.uuid, mark)
        self.eventually(
            lambda: self.online(self.reserved) == [0, 1, 2, 3],
            'all vCPUs',
            RECOVERY_S,
        )
        self.assert_promised()

    def test_libvirt_goes_in_mid_balloon(self):
        proxy = self.useFixture(agent_case.agent_fixtures.SocketProxy())
        mark = self.balloon(
            hypervisor__uri=proxy.uri, hypervisor__reconnect_max=1.0
        )
        self.await_taken()
        proxy.cut()
        self.agent.await_event(Code.HYPERVISOR_LOST, None, mark)
        self.assertEqual((16_000, 20_000), self.reserved.held()[0])
        proxy.mend()
        self.agent.await_event(Code.HYPERVISOR_BACK, None, mark)
        self.agent.stop()
        self.await_full(RECOVERY_S)
        self.assertEqual([(4_000, 20_000)] * 4, self.reserved.held())
        self.agent.start()

    def test_a_guest_agent_that_hangs_in_mid_balloon(self):
        # An agent that stops waits for ten seconds more than that.
        self.balloon(ballooning__guest_timeout=5.0)
        self.eventually(lambda: self.online(self.reserved) == [0], 'one vCPU')
        self.await_taken()
        # Hangs for some time, and the agent stops meanwhile: three times as
        # long, so that it has on a slow machine as well.
        self.execute(
            self.reserved,
            '(sleep 1; killall -STOP qemu-ga; echo %s >/dev/ttyS0; sleep 45; '
            'killall -CONT qemu-ga) >/dev/null 2>&1 </dev/null &' % _DONE,
        )
        self.agent.stop()
        # What was promised is still held by the vCPU that is left.
        self.assertEqual((16_000, 20_000), self.reserved.held()[0])
        self.agent.configure(
            ballooning__mode='on', **{**QUICK, 'ballooning__wait_share': 1.0}
        )
        self.agent.start()
        self.await_full(45 + RECOVERY_S)
        self.assert_promised()
        self.assert_unbound()

    @contextlib.contextmanager
    def killed_agent(self):
        """Have the agent be a process, which is killed at the end."""
        self.agent.stop()
        self.addCleanup(self.agent.start)
        self.addCleanup(self.agent.configure)
        self.agent.configure(**QUICK)
        with subprocess.Popen(
            [
                sys.executable,
                '-m',
                'vsched_agent.cmd.agent',
                '--config-file',
                self.agent.config_file,
                'run',
            ],
            start_new_session=True,
        ) as process:
            self.addCleanup(_end_group, process.pid)
            yield
            agent_guests.kill_group(process)

    def test_killed_in_mid_balloon(self):
        with self.killed_agent():
            self.eventually(
                lambda: (
                    self.online(self.reserved) == [0]
                    and self.online(self.plain) == [0]
                ),
                'the balloons',
            )
            self.await_taken()
        self.assertEqual(
            [(16_000, 20_000), None, None, None], self.reserved.held()
        )
        # The successor gives back, and would not take again so soon.
        self.agent.configure(**{**QUICK, 'ballooning__wait_share': 1.0})
        self.agent.start()
        self.await_full(RECOVERY_S)
        self.assert_promised()
        self.assert_unbound()
        self.agent.stop()

    def test_killed_between_two_steps(self):
        with self.killed_agent():
            # The journal speaks of it before anything is done.
            path = os.path.join(
                self.agent.conf.agent.state_path, 'agent.sqlite'
            )
            self.eventually(lambda: _noted(path), 'the first step')
        self.agent.configure(**{**QUICK, 'ballooning__wait_share': 1.0})
        self.agent.start()
        self.await_full(RECOVERY_S)
        self.assert_promised()
        self.assert_unbound()
        self.agent.stop()


class TestGuestIgnores(BalloonCase):
    """One guest says yes and goes on as before."""

    def test_it_keeps_everything(self):
        self.execute(
            self.reserved,
            'for cpu in 1 2 3; do mount --bind /dev/zero '
            '/sys/devices/system/cpu/cpu$cpu/online; done; '
            'echo %s >/dev/ttyS0' % _DONE,
        )
        mark = self.collector.mark()
        self.restart_agent(**QUICK)
        self.collector.await_news(
            # One before may be of a guest that was too slow to answer.
            lambda: any(
                'was set to use' in event.detail
                for event in self.collector.events(
                    mark, self.reserved.uuid, Code.BALLOON_FAILED
                )
            ),
            'the failure',
            2 * agent_fixture.PATIENCE_S,
        )
        self.eventually(
            lambda: self.online(self.reserved) == [0, 1, 2, 3], 'all vCPUs'
        )
        self.assert_promised()


def _noted(path):
    """Whether an agent has noted a balloon."""
    if not os.path.exists(path):
        return False
    # It may be made anew at the moment.
    with (
        contextlib.suppress(sqlite3.OperationalError),
        contextlib.closing(sqlite3.connect(path)) as journal,
    ):
        return (
            journal.execute('SELECT COUNT(*) FROM balloon').fetchone()[0] > 0
        )
    return False


def _end_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return

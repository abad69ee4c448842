# SPDX-License-Identifier: Apache-2.0

"""The threads that serve a real guest's I/O, and who pays for them."""

import os
import time

import fixtures

from vsched_agent.privileged import sched
from vsched_agent.privileged import syscalls
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.reservations import capacity_ledger
from vsched_agent.reservations import unclaimed_io
from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_fixture
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import errors
from vsched_lib.contract import messages

Code = errors.Code
State = messages.State

_DISK_BYTES = 16 << 20
_DEADLINE = syscalls.SCHED_DEADLINE
_RUNTIME_US = 10_000


class TestIoCharging(agent_case.AgentCase):
    """A guest that burns what it gets and reads blocks all the time."""

    @classmethod
    def setUpClass(cls):
        folder = fixtures.TempDir()
        folder.setUp()
        cls.addClassCleanup(folder.cleanUp)
        disks = []
        for name in ('main', 'iothread'):
            path = os.path.join(folder.path, name)
            with open(path, 'wb') as file:
                file.write(os.urandom(_DISK_BYTES))
            disks.append(path)
        cls.GUESTS = {
            'moving': {
                'load': 'burn',
                'iothreads': 1,
                'runs': (
                    'read /dev/vda 300 1 4096 0',
                    'read /dev/vdb 300 1 4096 0',
                ),
                'disks': (
                    domain_xml.Disk(disks[0], direct=False),
                    domain_xml.Disk(disks[1], direct=False, iothread=1),
                ),
            }
        }
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.vm = self.vms['moving']
        self.io_found = [syscalls.get_attr(tid) for tid in self.vm.io_tids]
        self.assertEqual(2, len(self.io_found))
        self.addCleanup(self.release_threads)

    def release_threads(self):
        mark = self.collector.mark()
        self.vm.set_extra_specs({})
        self.collector.await_news(
            lambda: (
                (
                    (said := self.collector.said(self.vm.uuid)) is None
                    or said.state == State.RELEASED
                )
                and self.vm.held() == [None]
                and not self.io_held()
            ),
            'release since %d' % mark,
        )

    def want(self, mode, **more):
        mark = self.collector.mark()
        self.vm.set_extra_specs(
            {'cpu_runtime_us': _RUNTIME_US, 'io_charging': mode, **more}
        )
        return mark

    def io_held(self):
        """(runtime, period) in us of each I/O thread under deadline."""
        found = []
        for tid in self.vm.io_tids:
            attr = syscalls.get_attr(tid)
            if attr.policy == _DEADLINE:
                found.append((attr.runtime_ns // 1000, attr.period_ns // 1000))
        return found

    def await_io(self, since=0, **fields):
        def look():
            said = self.collector.said(self.vm.uuid, since)
            return (
                said
                if said is not None
                and said.io is not None
                and all(
                    getattr(said.io, name) == value
                    for name, value in fields.items()
                )
                else None
            )

        # For a while after a refusal by the kernel, of an earlier test, the
        # host counts as having nothing to lend.
        return self.collector.await_news(
            look,
            'I/O threads %s' % fields,
            agent_fixture.PATIENCE_S
            + capacity_ledger.SATURATED_S
            + unclaimed_io.RETRY_S,
        )

    def want_default(self):
        mark = self.collector.mark()
        self.vm.set_extra_specs({'cpu_runtime_us': _RUNTIME_US})
        return mark

    def await_none(self):
        self.collector.await_news(
            lambda: (
                (said := self.collector.said(self.vm.uuid)) is not None
                and said.io is None
            ),
            'I/O threads let go',
        )
        self.assertEqual([], self.io_held())

    def await_guest(self, holds):
        """Wait for what the vCPU's thread holds; returns its runtime."""

        def look():
            (held,) = self.vm.held()
            return held[0] if held and holds(held[0]) else None

        return self.collector.await_news(look, "the guest's runtime")

    def assert_as_found(self):
        self.assertEqual(
            self.io_found, [syscalls.get_attr(tid) for tid in self.vm.io_tids]
        )

    def test_held_charged_and_put_back(self):
        mark = self.want('charge')
        said = self.await_io(mark, charging='charge', threads=2, code=None)
        self.assertEqual(2, len(self.io_held()))
        self.assertEqual({20_000}, {period for _, period in self.io_held()})
        self.assertEqual(State.APPLIED, said.state)
        # The promise is what it was; what is left of it is less.
        self.assertEqual(_RUNTIME_US, said.enforced_runtime_us)
        self.await_guest(lambda runtime_us: runtime_us < _RUNTIME_US)
        mark = self.collector.mark()
        self.agent.await_passes()
        self.assertEqual([], self.collector.vcpu_events(mark))
        self.release_threads()
        self.assert_as_found()

    def test_switched_live(self):
        self.want('charge')
        self.await_guest(lambda runtime_us: runtime_us < _RUNTIME_US)
        mark = self.want('overprovision')
        self.await_io(mark, charging='overprovision', threads=2)
        self.await_guest(lambda runtime_us: runtime_us == _RUNTIME_US)
        self.assertEqual(2, len(self.io_held()))
        mark = self.want('none')
        self.await_none()
        self.await_guest(lambda runtime_us: runtime_us == _RUNTIME_US)
        self.assert_as_found()
        mark = self.want('charge')
        # The guest's runtime is lowered before its I/O threads get theirs.
        self.await_io(mark, charging='charge', threads=2)
        self.await_guest(lambda runtime_us: runtime_us < _RUNTIME_US)
        self.assertEqual(2, len(self.io_held()))

    def test_guest_and_host_share_the_promise(self):
        self.want('charge')
        self.await_guest(lambda runtime_us: runtime_us < _RUNTIME_US)
        # What it began with is paid back by then.
        agent_guests.pause(8.0)
        got = agent_guests.measure([*self.vm.vcpu_tids, *self.vm.io_tids], 5.0)
        self.assertLess(sum(got.shares), 0.5 + self.TOLERANCE + got.stolen)
        # What the guest leaves when it waits for its I/O is not its debt.
        self.assertGreater(sum(got.shares), 0.9 * 0.5 - got.stolen)
        self.assertGreater(sum(got.shares[1:]), 0.01)

    def test_a_successor_takes_over(self):
        self.want('charge')
        self.await_guest(lambda runtime_us: runtime_us < _RUNTIME_US)
        self.agent.stop()
        held = self.io_held()
        self.assertEqual(2, len(held))
        mark = self.collector.mark()
        self.agent.start()
        self.await_io(mark, threads=2)
        self.assertEqual(
            [], self.collector.events(mark, self.vm.uuid, Code.DRIFT_REPAIRED)
        )
        self.await_guest(lambda runtime_us: runtime_us < _RUNTIME_US)
        self.release_threads()
        self.assert_as_found()

    def test_an_agent_that_puts_back(self):
        self.restart_agent(restore_on_stop=True)
        self.want('overprovision')
        self.await_io(charging='overprovision', threads=2)
        self.agent.stop()
        self.assert_as_found()
        self.assertEqual([None], self.vm.held())
        mark = self.collector.mark()
        self.agent.start()
        self.await_io(mark, threads=2)

    def test_drift_is_repaired(self):
        mark = self.want('overprovision')
        self.await_io(mark, threads=2)
        tid = self.vm.io_tids[0]
        mark = self.collector.mark()
        self.assertEqual(
            (),
            tuple(
                sched.leave_deadline([(tid, syscalls.SCHED_OTHER, 0, 0, 0)])
            ),
        )
        event = self.agent.await_event(Code.DRIFT_REPAIRED, self.vm.uuid, mark)
        self.assertEqual([tid], event.figures['tids'])
        self.assertEqual(2, len(self.io_held()))

    def test_what_does_not_fit(self):
        with agent_case.taken_but(0.51):
            mark = self.want('overprovision')
            event = self.agent.await_event(Code.IO_REFUSED, self.vm.uuid, mark)
            self.assertEqual(messages.Severity.WARNING, event.severity)
            self.assertEqual([(_RUNTIME_US, 20_000)], self.vm.held())
            self.assertEqual([], self.io_held())
            # Inside of the promise there is room.
            mark = self.want('charge')
            self.agent.await_event(Code.IO_HELD, self.vm.uuid, mark)
            self.assertEqual(2, len(self.io_held()))

    def test_held_by_default_and_no_claim(self):
        mark = self.want_default()
        said = self.await_io(mark, charging='auto', threads=2, code=None)
        self.assertEqual(State.APPLIED, said.state)
        self.assertEqual(2, len(self.io_held()))
        agent_guests.pause(3.0)
        # Whatever the threads have, the guest keeps all of its runtime.
        self.assertEqual([(_RUNTIME_US, 20_000)], self.vm.held())
        self.assertEqual(
            500,
            self.collector.await_news(
                lambda: next(
                    (
                        one.host_info.admitted_mcpu
                        for one in reversed(self.collector.reports)
                        if one.host_info is not None
                    ),
                    None,
                ),
                'what is admitted',
            ),
        )
        self.release_threads()
        self.assert_as_found()

    def test_what_is_lent_makes_room_for_a_reservation(self):
        mark = self.want_default()
        self.await_io(mark, charging='auto', threads=2, code=None)
        # Others have what remains: the kernel refuses the guest at first.
        with agent_case.taken_but(0.01):
            # Read here: what the threads give back from now on is free.
            held = sum(
                runtime_us / period_us
                for runtime_us, period_us in self.io_held()
            )
            more_us = int(0.9 * held * 20_000)
            self.assertGreater(more_us, 20_000 * 0.011)
            mark = self.collector.mark()
            self.vm.set_extra_specs({'cpu_runtime_us': _RUNTIME_US + more_us})
            self.agent.await_said(
                self.vm.uuid,
                mark,
                state=State.APPLIED,
                enforced_runtime_us=_RUNTIME_US + more_us,
            )
            self.assertEqual([(_RUNTIME_US + more_us, 20_000)], self.vm.held())

    def test_above_a_quota_on_the_emulator(self):
        """The class is above quotas: the classic freeze does not happen."""
        period_us, quota_us = 100_000, 1_000
        # Not by libvirt, which waits for a monitor that is frozen.
        self.addCleanup(self.vm.set_quota, -1, period_us, self.vm.pid)
        self.vm.set_quota(quota_us, period_us, self.vm.pid)
        got = agent_guests.measure([self.vm.pid], 3.0)
        self.assertLess(got.shares[0], 0.02 + got.stolen)
        mark = self.want('overprovision', backend='cfs')
        said = self.await_io(mark, threads=2)
        self.assertEqual('cfs', said.enforced_backend)
        # What it owes of the quota is paid back by and by.
        give_up = time.monotonic() + agent_fixture.PATIENCE_S
        freed = 0.0
        while freed <= 0.02 and time.monotonic() < give_up:
            freed = agent_guests.measure([self.vm.pid], 3.0).shares[0]
        self.assertGreater(freed, 0.02)

# SPDX-License-Identifier: Apache-2.0

"""The periods of a real guest that answers packets among busy neighbours."""

import contextlib
import os
import socket
import subprocess
import threading
import time

import fixtures

from vsched_agent.privileged import syscalls
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_fixture
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import reservation

Code = errors.Code
State = messages.State

_ADDRESS, _GUEST, _LIAR = '198.18.65.1', '198.18.65.2', '198.18.65.3'
_PREFIX = 24
_ECHO_PORT, _SINK_PORT = 7, 9
#: Of each neighbour and of the guest that answers, every 20 ms.
_HOG_US, _RUNTIME_US, _PERIOD_US = 4_000, 8_000, 20_000
_PAUSE_S = 0.02
#: Only a guest that hangs takes longer.
_DIVIDED_S = 4 * agent_fixture.PATIENCE_S


class Bridge(fixtures.Fixture):
    """A bridge of this host with an address of its own."""

    def _setUp(self):
        self.name = 'vst%d' % os.getpid()
        self.addCleanup(self._ip, 'link', 'delete', self.name)
        self._ip('link', 'add', self.name, 'type', 'bridge')
        self._ip(
            'address', 'add', '%s/%d' % (_ADDRESS, _PREFIX), 'dev', self.name
        )
        self._ip('link', 'set', self.name, 'up')

    def _ip(self, *words):
        subprocess.run(('ip', *words), check=True, capture_output=True)


class Client(fixtures.Fixture):
    """Asks the guest all the time; counts its answers."""

    def _setUp(self):
        self.answers = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self.addCleanup(self._thread.join)
        self.addCleanup(self._end.set)
        self._thread.start()

    def _ask(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
            channel.bind((_ADDRESS, 0))
            channel.connect((_GUEST, _ECHO_PORT))
            channel.settimeout(1.0)
            while not self._end.wait(_PAUSE_S):
                with contextlib.suppress(OSError):
                    channel.send(b'question')
                    channel.recv(64)
                    self.answers += 1

    def await_answers(self, count=10):
        before, give_up = (
            self.answers,
            time.monotonic() + agent_fixture.PATIENCE_S,
        )
        while self.answers < before + count:
            if time.monotonic() > give_up:
                raise AssertionError('the guest does not answer')
            agent_guests.pause(0.1)


class TestCommunication(agent_case.AgentCase):
    """One guest answers packets; two burn, one of which sends in vain."""

    @classmethod
    def setUpClass(cls):
        bridge = Bridge()
        bridge.setUp()
        cls.addClassCleanup(bridge.cleanUp)
        card = (domain_xml.Network(bridge.name),)
        cls.GUESTS = {
            'answers': {
                'ip': '%s/%d' % (_GUEST, _PREFIX),
                'runs': ('echo %d 300 0' % _ECHO_PORT,),
                'networks': card,
            },
            'burns': {'load': 'burn'},
            'floods': {
                'load': 'burn',
                'ip': '%s/%d' % (_LIAR, _PREFIX),
                'runs': ('send %s %d 300 1 64 0' % (_ADDRESS, _SINK_PORT),),
                'networks': card,
            },
        }
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.vm = self.vms['answers']
        self.hogs = [self.vms['burns'], self.vms['floods']]
        self.as_found = self.vm.found(), syscalls.get_attr(self.vm.pid)
        self.addCleanup(self.release)
        self.client = self.useFixture(Client())
        self.client.await_answers()

    def release(self):
        for vm in self.vms.values():
            vm.set_extra_specs({})
        for vm in self.vms.values():
            self.collector.await_news(
                lambda vm=vm: (
                    (said := self.collector.said(vm.uuid)) is None
                    or said.state == State.RELEASED
                ),
                'release',
            )

    def want(self, **more):
        mark = self.collector.mark()
        self.vm.set_extra_specs(
            {
                'cpu_runtime_us': _RUNTIME_US,
                'cpu_period_us': _PERIOD_US,
                # Its thread needs room for bursts to be divided.
                'io_charging': 'auto',
                **more,
            }
        )
        return mark

    def want_hogs(self):
        for vm in self.hogs:
            vm.set_extra_specs(
                {
                    'cpu_runtime_us': _HOG_US,
                    'cpu_period_us': _PERIOD_US,
                    'io_charging': 'overprovision',
                }
            )
        for vm in self.hogs:
            self.agent.await_said(vm.uuid, state=State.APPLIED)

    def await_divided(self, mark):
        # Only once the guest has answered for a while.
        event = self.collector.await_news(
            lambda: next(
                iter(
                    self.collector.events(
                        mark, self.vm.uuid, Code.PERIOD_DIVIDED
                    )
                ),
                None,
            ),
            'parts of periods',
            _DIVIDED_S,
        )
        self.assertGreater(event.figures['granularity'], 1)
        return event

    def await_whole(self):
        def look():
            return (
                self.vm.held() == [(_RUNTIME_US, _PERIOD_US)]
                and syscalls.get_attr(self.vm.pid).period_ns
                == _PERIOD_US * reservation.NS_PER_US
            )

        self.collector.await_news(look, 'whole periods')

    def parts(self):
        """Return the granularity; None where the kernel has other parts."""
        (vcpu,) = self.vm.attrs()
        main = syscalls.get_attr(self.vm.pid)
        if {syscalls.SCHED_DEADLINE} != {vcpu.policy, main.policy}:
            return None
        period_ns = _PERIOD_US * reservation.NS_PER_US
        parts = period_ns // vcpu.period_ns
        of_main = period_ns // main.period_ns
        exact = (
            (_RUNTIME_US * reservation.NS_PER_US, period_ns)
            == (vcpu.runtime_ns * parts, vcpu.period_ns * parts)
            and vcpu.period_ns == vcpu.deadline_ns
            and main.period_ns * of_main == period_ns
            and of_main <= parts
        )
        divided = reservation.GRANULARITIES[1:]
        return parts if exact and {parts, of_main} <= {*divided} else None

    def assert_divided(self):
        """The kernel has exact parts of both; returns the granularity.

        They are not read at one moment, and change with what the guest does:
        a machine that stands still lets them be whole for a while.
        """
        return self.collector.await_news(
            self.parts, 'exact parts of both', _DIVIDED_S
        )

    def assert_kept(self, before, mark):
        """The vCPU has what it had, or parts that were reported since.

        :param before: what it had.
        :param mark: a place in the reports.
        """

        def kept():
            now = self.vm.attrs()
            return now == before or any(
                (event.figures['runtime_ns'], event.figures['period_ns'])
                == (now[0].runtime_ns, now[0].period_ns)
                for event in self.collector.events(
                    mark, self.vm.uuid, Code.PERIOD_DIVIDED
                )
            )

        self.collector.await_news(kept, 'the same parts or an event of others')

    def test_divided_and_whole_again(self):
        self.want_hogs()
        mark = self.want()
        self.await_divided(mark)
        # They may have been divided once more by now, and may be later.
        parts = self.assert_divided()
        divided = (_RUNTIME_US * 1000 // parts, _PERIOD_US * 1000 // parts)
        self.collector.await_news(
            lambda: any(
                (event.figures['runtime_ns'], event.figures['period_ns'])
                == divided
                for event in self.collector.events(
                    mark, self.vm.uuid, Code.PERIOD_DIVIDED
                )
            ),
            'the event of %d parts' % parts,
        )
        said = self.collector.await_news(
            lambda: next(
                (
                    one
                    for report in self.collector.reports[mark:]
                    for one in report.reservations
                    if one.instance_uuid == self.vm.uuid
                    and one.communication is not None
                    and one.communication.granularity == parts
                ),
                None,
            ),
            'the granularity',
        )
        # The reservation is what it was.
        self.assertEqual(
            (State.APPLIED, _RUNTIME_US, _PERIOD_US),
            (said.state, said.enforced_runtime_us, said.enforced_period_us),
        )
        self.agent.await_passes()
        self.assertEqual(
            [], self.collector.events(mark, code=Code.DRIFT_REPAIRED)
        )
        for vm in self.hogs:
            self.assert_share(_HOG_US / _PERIOD_US, vm)
        self.client.await_answers()
        self.want(comm_aware='false')
        self.await_whole()
        for vm in self.hogs:
            self.assert_share(_HOG_US / _PERIOD_US, vm)
        self.release()
        self.collector.await_news(
            lambda: (
                self.as_found
                == (self.vm.found(), syscalls.get_attr(self.vm.pid))
            ),
            'what was found',
        )

    def test_kept_by_the_next_agent(self):
        self.await_divided(self.want())
        self.assert_divided()
        self.agent.stop()
        before = self.vm.attrs()
        mark = self.collector.mark()
        self.agent.start()
        self.agent.await_passes()
        self.assert_kept(before, mark)
        self.assert_divided()
        self.assertEqual(
            [], self.collector.events(mark, self.vm.uuid, Code.DRIFT_REPAIRED)
        )

    def test_drift_is_repaired(self):
        mark = self.want()
        self.await_divided(mark)
        self.agent.await_passes()
        self.assert_divided()
        mark = self.collector.mark()
        (tid,), (before,) = self.vm.vcpu_tids, self.vm.attrs()
        syscalls.set_attr(
            tid,
            before._replace(
                runtime_ns=_RUNTIME_US * 1000,
                deadline_ns=_PERIOD_US * 1000,
                period_ns=_PERIOD_US * 1000,
            ),
        )
        self.agent.await_event(Code.DRIFT_REPAIRED, self.vm.uuid, mark)
        self.assert_kept([before], mark)

    def test_restored_by_an_agent_that_stops(self):
        self.restart_agent(restore_on_stop=True)
        self.await_divided(self.want())
        self.agent.stop()
        self.assertEqual(
            self.as_found, (self.vm.found(), syscalls.get_attr(self.vm.pid))
        )

    def test_switched_off_on_the_host(self):
        self.await_divided(self.want())
        self.restart_agent(communication__enabled=False)
        self.await_whole()

    def test_a_quota_is_not_supported(self):
        self.want(backend='cfs')
        self.collector.await_news(
            lambda: (
                (said := self.collector.said(self.vm.uuid)) is not None
                and said.communication is not None
                and said.communication.code == Code.COMMUNICATION_UNSUPPORTED
            ),
            'not supported',
        )

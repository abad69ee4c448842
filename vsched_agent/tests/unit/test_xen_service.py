# SPDX-License-Identifier: Apache-2.0

"""The whole agent on a Xen host that only pretends.

Its parts are those of a real host: driver, backend, helper, capacity, meter,
loop, journal and reports. Only libvirt's daemon and the toolstack are not.
"""

import tempfile
import threading
import time
from unittest import mock
import uuid as uuids

from oslo_config import cfg
from oslotest import base

from vsched_agent import conf as agent_conf
from vsched_agent import service
from vsched_agent.tests import collector_endpoint
from vsched_agent.tests import fake_libxl
from vsched_agent.tests import fake_xl
from vsched_agent.tests import fakes
from vsched_lib.contract import collector_replies
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import rpc

State = messages.State
#: Only a hang takes longer.
PATIENCE_S = 60


class TestXenAgent(base.BaseTestCase):
    """Two CPUs, of which the first domain has a budget of 400 mcpu."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.xl = self.useFixture(fake_xl.FakeXl())
        self.daemon = self.useFixture(fake_libxl.FakeLibxl())
        self.conf = cfg.ConfigOpts()
        agent_conf.register_opts(self.conf)
        self.conf([], default_config_files=[], default_config_dirs=[])
        self.set('hypervisor', 'uri', 'xen:///system')
        self.set('hypervisor', 'watch_interval', 0.1)
        self.set('agent', 'state_path', folder.name)
        self.set('agent', 'host', 'xen-' + uuids.uuid4().hex)
        self.set('agent', 'interval', 0.1)
        self.set('agent', 'report_interval', 0.1)
        self.instances = 0
        self.transport = rpc.get_transport(self.conf, 'fake://')
        self.collector = fakes.FakeCollector()
        patch = mock.patch(
            'vsched_agent.service.privileged.use', lambda conf: None
        )
        patch.start()
        self.addCleanup(patch.stop)
        server = rpc.get_server(
            self.transport,
            collector_rpc.TOPIC,
            'collector',
            [collector_endpoint.Endpoint(self.collector)],
        )
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)

    def set(self, group, name, value):
        self.conf.set_override(name, value, group)
        # Groups are shared by all that register them.
        self.addCleanup(self.conf.clear_override, name, group)

    def start_agent(self):
        agent = service.Agent(self.conf, self.transport)
        agent.start()
        self.addCleanup(agent.stop)
        return agent

    def stop_agent(self, agent):
        self._cleanups.remove((agent.stop, (), {}))
        agent.stop()
        agent.wait()

    def instance(self, vcpus=1, **extra_specs):
        """Start a domain of libvirt; return its UUID and its number."""
        # The newest is the first in order.
        self.instances += 1
        uuid = '00000000-0000-4000-8000-%012d' % (100 - self.instances)
        self.xl.start(self.daemon._domid + 1, vcpus)
        domain = self.daemon.start_domain(
            uuid,
            vcpus,
            {'vsched:' + key: str(one) for key, one in extra_specs.items()},
        )
        return uuid, domain.domid

    def override(self, generation, **runtimes_us):
        """Have an operator override reservations, by instance."""
        self.collector.overridden = collector_replies.Overrides(
            generation,
            tuple(
                collector_replies.Override(
                    uuid, generation, runtime_us, 10_000, 'capped'
                )
                for uuid, runtime_us in runtimes_us.items()
            ),
        )

    def until(self, reached, what):
        give_up = time.monotonic() + PATIENCE_S
        never = threading.Event()
        while not (found := reached()):
            self.assertLess(time.monotonic(), give_up, what())
            never.wait(0.02)
        return found

    def until_xen_has(self, domid, *values):
        wanted = [list(one) for one in values]

        def present():
            return [
                self.xl.vcpus[domid, index] for index in range(len(wanted))
            ]

        self.until(lambda: present() == wanted, present)

    def until_reported(self, uuid, state):
        def newest():
            for report in reversed(self.collector.reports):
                for one in report.reservations:
                    if one.instance_uuid == uuid:
                        return one
            return None

        self.until(
            lambda: (one := newest()) is not None and one.state == state,
            newest,
        )
        return newest()

    def events(self, code):
        return [
            one
            for report in self.collector.reports
            for one in report.events
            if one.code == code
        ]

    def until_event(self, code):
        return self.until(lambda: self.events(code), lambda: code)

    def test_from_the_start_to_the_restoring(self):
        uuid, domid = self.instance(2)
        self.xl.vcpus[domid, 1] = [30_000, 9_000, True]
        first = self.start_agent()
        self.until(lambda: self.collector.reports, lambda: 'no report')
        info = self.collector.reports[0].host_info
        self.assertEqual(
            ('xen', 2, [messages.BackendInfo('rtds', True)]),
            (
                info.hypervisor,
                info.cpus,
                [one for one in info.backends if one.usable],
            ),
        )
        # 2000 without 400 of the first domain, 400 and 300.
        self.assertEqual(900, info.capacity_mcpu)
        self.override(1, **{uuid: 6_000})
        first._reporter.fetch_overrides()
        self.until_xen_has(domid, *[(10_000, 6_000, False)] * 2)
        sent = self.until_reported(uuid, State.APPLIED)
        self.assertEqual('rtds', sent.enforced_backend)
        self.assertEqual(messages.Source.OVERRIDE, sent.source)
        self.until(
            lambda: (
                [
                    (one.host_info.capacity_mcpu, one.host_info.admitted_mcpu)
                    for one in self.collector.reports
                    if one.host_info is not None
                ][-1]
                == (1_600, 1_200)
            ),
            lambda: self.collector.reports[-1],
        )
        # One that does not fit beside it.
        other, other_domid = self.instance(
            1, cpu_runtime_us=4_100, cpu_period_us=10_000
        )
        refused = self.until_reported(other, State.REFUSED)
        self.assertEqual(errors.Code.DOES_NOT_FIT, refused.code)
        self.stop_agent(first)
        self.until_xen_has(domid, *[(10_000, 6_000, False)] * 2)
        # An operator's change while no agent runs is repaired, before the
        # other instance can have what it releases.
        self.xl.vcpus[domid, 0] = [10_000, 1_000, True]
        reports = len(self.collector.reports)
        second = self.start_agent()
        self.until_xen_has(domid, *[(10_000, 6_000, False)] * 2)
        self.until(
            lambda: len(self.collector.reports) > reports, lambda: 'no report'
        )
        self.set('agent', 'restore_on_stop', True)
        self.stop_agent(second)
        self.until_xen_has(domid, (10_000, 4_000, True), (30_000, 9_000, True))
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[other_domid, 0])
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[0, 0])

    def test_usage_is_reported_and_charged(self):
        uuid, domid = self.instance(
            cpu_runtime_us=8_000, cpu_period_us=10_000, io_charging='charge'
        )
        guest = self.daemon.domains[uuid]
        first = self.daemon.domains[self.daemon.DOM0]
        self.start_agent()
        self.until_xen_has(domid, (10_000, 8_000, False))

        def run():
            # More than the reservation; the first domain runs as well.
            for one in (guest, first):
                one.times_ns[0] = one.times_ns.get(0, 0) + 10**8
            return self.xl.vcpus[domid, 0][1] < 8_000

        self.until(run, lambda: self.xl.vcpus)

        def reported(name, figure):
            return self.until(
                lambda: [
                    one
                    for report in self.collector.reports
                    for one in getattr(report, name)
                    if getattr(one, figure)
                ],
                lambda: name,
            )

        found = reported('usage', 'guest_us')
        self.assertEqual(
            {(uuid, None)},
            {(one.instance_uuid, one.executions) for one in found},
        )
        found = reported('host_usage', 'own_us')
        self.assertEqual({2}, {one.cpus for one in found})

    def test_the_end_of_a_reservation_that_cannot_be_restored(self):
        uuid, domid = self.instance()
        self.override(1, **{uuid: 1_000})
        agent = self.start_agent()
        self.until_xen_has(domid, (10_000, 1_000, False))
        self.until_reported(uuid, State.APPLIED)
        self.xl.start(90)
        self.xl.start(91)
        self.xl.vcpus[90, 0] = [10_000, 9_000, True]
        self.override(2)
        agent._reporter.fetch_overrides()
        (event,) = self.until_event(errors.Code.RESTORE_INCOMPLETE)
        self.assertEqual(uuid, event.instance_uuid)
        self.assertEqual(
            {
                'vcpus': 1,
                'found_mcpu': 400,
                'present_mcpu': 100,
                'left_mcpu': 200,
            },
            event.figures,
        )
        self.until_reported(uuid, State.RELEASED)
        self.assertEqual([10_000, 1_000, False], self.xl.vcpus[domid, 0])
        # The capacity that is released is used, and the event is not sent
        # again.
        self.xl.end(90)
        self.until_xen_has(domid, (10_000, 4_000, True))
        self.assertEqual(1, len(self.events(errors.Code.RESTORE_INCOMPLETE)))

    def test_a_stop_that_cannot_restore_is_reported_by_the_next_agent(self):
        uuid, domid = self.instance()
        self.override(1, **{uuid: 1_000})
        self.set('agent', 'restore_on_stop', True)
        first = self.start_agent()
        self.until_reported(uuid, State.APPLIED)
        self.xl.start(90)
        self.xl.vcpus[90, 0] = [10_000, 9_999, True]
        self.xl.start(91)
        self.stop_agent(first)
        self.assertEqual([10_000, 1_000, False], self.xl.vcpus[domid, 0])
        self.assertEqual([], self.events(errors.Code.RESTORE_INCOMPLETE))
        self.start_agent()
        (event,) = self.until_event(errors.Code.RESTORE_INCOMPLETE)
        self.assertEqual(uuid, event.instance_uuid)
        self.assertEqual(400, event.figures['found_mcpu'])
        self.assertEqual(100, event.figures['left_mcpu'])

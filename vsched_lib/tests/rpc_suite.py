# SPDX-License-Identifier: Apache-2.0

"""What clients and servers of the bus do, on any bus.

Mixed into a test case that says which bus: the one in memory and a real
broker pass the same tests.
"""

import contextlib
import queue
import threading
import uuid

from oslo_config import cfg
from oslo_context import fixture as context_fixture
import oslo_messaging as messaging
from oslo_messaging import opts

from vsched_lib.contract import agent_rpc
from vsched_lib.contract import collector_replies
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import request_context
from vsched_lib.contract import rpc
from vsched_lib.contract import wire

#: Long enough for any machine; a test that passes never waits for it.
PATIENCE_S = 60


def heartbeat_threads():
    """Return the threads in which oslo.messaging sends heartbeats."""
    return {
        thread
        for thread in threading.enumerate()
        if '_watchdog' in thread.name
    }


def report(batch=1, **more):
    return messages.Report('node1', batch, 1700000000.25, **more)


def full_report(batch=1, instances=3):
    uuids = [str(uuid.UUID(int=number)) for number in range(instances)]
    return report(
        batch,
        host_info=messages.HostInfo(
            '0.1.0',
            '6.1.0',
            'boot',
            'qemu',
            2,
            4000,
            1800,
            600,
            0,
            (
                messages.BackendInfo('deadline', True),
                messages.BackendInfo('cfs', False, ('no controller',)),
            ),
        ),
        instances=tuple(
            messages.InstanceInfo(one, 'vm \u2603', 4) for one in uuids
        ),
        reservations=tuple(
            messages.ReservationReport(
                one,
                messages.Source.METADATA,
                messages.State.REFUSED,
                4,
                1700000000.0,
                runtime_us=12_000,
                period_us=20_000,
                code='vsched.reservation.does_not_fit',
                figures={'needed_mcpu': 2400, 'bound_mcpu': 1800},
            )
            for one in uuids
        ),
        usage=tuple(
            messages.UsageSample(
                one, 1700000000.0, 1_000_000, 600_000, 12, None
            )
            for one in uuids
        ),
        events=(
            messages.Event(
                str(uuid.UUID(int=7)),
                1700000000.0,
                'vsched.drift.repaired',
                messages.Severity.WARNING,
                'detail',
            ),
        ),
    )


class Collector(collector_rpc.CollectorEndpoint):
    """Keeps what it is told and answers what the test says."""

    def __init__(self, name='collector'):
        self.name = name
        self.reports = []
        self.requests = []
        self.hosts = []
        self.reply = collector_replies.ReportReply(False, 3)
        self.known = collector_replies.Overrides(
            3,
            (
                collector_replies.Override(
                    '1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b4f',
                    2,
                    5_000,
                    20_000,
                    'capped',
                ),
                collector_replies.Override(
                    '1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b50',
                    3,
                    5_000,
                    20_000,
                    'work_conserving',
                    'deadline',
                ),
            ),
        )
        self.fail = None
        self._lock = threading.Lock()

    def on_report(self, report):
        self.requests.append(request_context.outgoing())
        if self.fail is not None:
            raise self.fail
        with self._lock:
            self.reports.append(report)
        return self.reply

    def on_overrides(self, host):
        self.hosts.append(host)
        return self.known

    def on_jobs(self, host):
        self.hosts.append(host)
        return messages.Jobs(
            4,
            (
                messages.JobOrder(
                    '1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b51',
                    messages.JobKind.PROFILE_ERROR,
                    messages.JobWanted.RUN,
                    2,
                    {'quick': True},
                ),
            ),
        )


class Agent(agent_rpc.AgentEndpoint):
    """Keeps the generations it is told of."""

    def __init__(self):
        self.generations = queue.Queue()

    def on_overrides_changed(self, generation):
        self.request = request_context.outgoing()
        self.generations.put(generation)

    def on_jobs_changed(self, generation):
        self.generations.put(('jobs', generation))


class OnBus:
    """What a test case on a bus needs. It sets ``url``."""

    url: str

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        self.conf([], default_config_files=[])
        # Nothing that another test left on the bus may reach this one.
        rpc.get_transport(self.conf, 'fake://').cleanup()
        self.conf.set_override(
            'control_exchange', 'vsched-' + uuid.uuid4().hex
        )
        self.transport = self.make_transport(self.url)

    def make_transport(self, url):
        transport = rpc.get_transport(self.conf, url)
        self.addCleanup(transport.cleanup)
        return transport

    def serve(self, topic, server, endpoint, transport=None):
        running = rpc.get_server(
            transport or self.transport, topic, server, [endpoint]
        )
        running.start()
        self.addCleanup(running.wait)
        self.addCleanup(running.stop)
        return running

    def collector(self, name='collector', transport=None):
        endpoint = Collector(name)
        self.serve(collector_rpc.TOPIC, name, endpoint, transport)
        return endpoint

    def agent_client(self):
        """Return what reaches agents, however long the bus takes."""
        return agent_rpc.AgentClient(self.transport, PATIENCE_S)

    def client(self, timeout_s=PATIENCE_S, transport=None):
        return collector_rpc.CollectorClient(
            transport or self.transport, timeout_s
        )


class HeartbeatTests:
    """Mixed into a test case on a bus; the fake one carries no such wish."""

    def test_heartbeats_that_a_request_asks_for_are_not_sent(self):
        self.collector()
        before = heartbeat_threads()
        # oslo.messaging sends the first one after half of that time.
        asking = messaging.get_rpc_client(
            self.transport,
            messaging.Target(topic=collector_rpc.TOPIC, version='1.0'),
            timeout=PATIENCE_S,
            call_monitor_timeout=PATIENCE_S,
        )
        for method in ('nothing', 'on_overrides'):
            error = self.assertRaises(
                (messaging.RemoteError, messaging.RPCDispatcherError),
                asking.call,
                {},
                method,
            )
            self.assertIn(
                'NoSuchMethod', '%s: %s' % (type(error).__name__, error)
            )
        self.assertEqual(before, heartbeat_threads())
        # One that is known is answered without them.
        self.assertIn('overrides', asking.call({}, 'overrides', host='node1'))
        self.assertEqual(before, heartbeat_threads())


class RpcSuite(OnBus):
    """The tests."""

    def refused(self, word, method, version='1.0', **arguments):
        """Call the collector without our client; it must not work."""
        raw = messaging.get_rpc_client(
            self.transport,
            messaging.Target(topic=collector_rpc.TOPIC, version=version),
            timeout=PATIENCE_S,
        )
        # In memory errors arrive as themselves, else as RemoteError.
        error = self.assertRaises(
            (
                messaging.RemoteError,
                messaging.RPCDispatcherError,
                wire.MalformedMessage,
            ),
            raw.call,
            {},
            method,
            **arguments,
        )
        self.assertIn(word, '%s: %s' % (type(error).__name__, error))

    def test_report_arrives_as_sent(self):
        collector = self.collector()
        collector.reply = collector_replies.ReportReply(True, 9, True)
        reply = self.client().report(full_report())
        self.assertEqual(collector_replies.ReportReply(True, 9, True), reply)
        self.assertEqual([full_report()], collector.reports)

    def test_overrides_arrive_as_sent(self):
        collector = self.collector()
        self.assertEqual(collector.known, self.client().overrides('node1'))
        self.assertEqual(['node1'], collector.hosts)

    def test_large_report(self):
        collector = self.collector()
        large = full_report(instances=1000)
        self.client().report(large)
        self.assertEqual([large], collector.reports)

    def test_order_is_kept(self):
        collector = self.collector()
        client = self.client()
        for batch in range(20):
            client.report(report(batch))
        self.assertEqual(
            list(range(20)), [one.batch for one in collector.reports]
        )

    def test_two_collectors_share(self):
        first, second = self.collector('one'), self.collector('two')
        client = self.client()
        for batch in range(20):
            client.report(report(batch))
        self.assertEqual(
            list(range(20)),
            sorted(one.batch for one in first.reports + second.reports),
        )

    def test_two_agents_at_once(self):
        collector = self.collector()
        failures = []

        def deliver(host):
            client = self.client()
            for batch in range(10):
                try:
                    client.report(messages.Report(host, batch, 1.0))
                except errors.Unreachable as error:
                    failures.append(error)

        threads = [
            threading.Thread(target=deliver, args=(host,))
            for host in ('node1', 'node2')
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], failures)
        self.assertEqual(20, len(collector.reports))

    def test_requests_wait_for_threads_on_the_bus(self):
        goes_on = threading.Event()
        self.addCleanup(goes_on.set)
        arrived = threading.Semaphore(0)

        class Slow(Agent):
            def on_overrides_changed(self, generation):
                arrived.release()
                goes_on.wait(PATIENCE_S)
                super().on_overrides_changed(generation)

        for group, name, value in (
            (None, 'executor_thread_pool_size', 2),
            ('oslo_messaging_rabbit', 'rabbit_qos_prefetch_count', 1),
        ):
            self.conf.register_opts(
                [
                    one
                    for listed, options in opts.list_opts()
                    for one in options
                    if (listed, one.name) == (group, name)
                ],
                group=group,
            )
            self.conf.set_override(name, value, group=group)
        slow, other = Slow(), Agent()
        self.serve(agent_rpc.TOPIC, 'slow', slow)
        client = rpc.get_client(
            self.transport, agent_rpc.TOPIC, agent_rpc.VERSION
        )
        for generation in range(8):
            client.cast({}, 'overrides_changed', generation=generation)
        for _ in range(2):
            self.assertTrue(arrived.acquire(timeout=PATIENCE_S))
        self.serve(agent_rpc.TOPIC, 'other', other)
        # All but those with a thread, one that the server has read, and one
        # that the broker has sent ahead.
        took = {other.generations.get(timeout=PATIENCE_S) for _ in range(4)}
        goes_on.set()
        took |= {slow.generations.get(timeout=PATIENCE_S) for _ in range(2)}
        while len(took) < 8:
            # Which of them has taken the others depends on the bus.
            for agent in (slow, other):
                with contextlib.suppress(queue.Empty):
                    took.add(agent.generations.get(timeout=0.1))
        self.assertEqual(set(range(8)), took)

    def test_nobody_there(self):
        error = self.assertRaises(
            errors.Unreachable, self.client(1).report, report()
        )
        self.assertIn('collector: report:', str(error))
        error = self.assertRaises(
            errors.Unreachable, self.client(1).overrides, 'node1'
        )
        self.assertIn('collector: overrides:', str(error))

    def test_collector_that_fails_has_not_stored(self):
        collector = self.collector()
        client = self.client()
        # Errors of builtins travel as themselves, others as RemoteError.
        for failure in (
            KeyError('gone'),
            errors.VschedError('no database'),
            wire.MalformedMessage('Report.batch: missing'),
        ):
            collector.fail = failure
            error = self.assertRaises(
                errors.Unreachable, client.report, report()
            )
            self.assertIn(type(failure).__name__, str(error))
        collector.fail = None
        client.report(report(2))
        self.assertEqual([2], [one.batch for one in collector.reports])

    def test_jobs_come_as_the_collector_knows_them(self):
        collector = self.collector()
        self.assertEqual(
            collector.on_jobs('node1'), self.client().jobs('node1')
        )

    def test_malformed_report_is_not_handed_on(self):
        collector = self.collector()
        self.refused(
            'Report.batch: missing',
            'report',
            report={'host': 'node1', 'at': 1.0},
        )
        self.assertEqual([], collector.reports)

    def test_malformed_answer_is_not_handed_on(self):
        class Odd(Collector):
            def on_overrides(self, host):
                return collector_replies.ReportReply(False, 1)

        self.serve(collector_rpc.TOPIC, 'odd', Odd())
        # Its keys are known ones of another message.
        error = self.assertRaises(
            wire.MalformedMessage, self.client().overrides, 'node1'
        )
        self.assertIn('Overrides.generation', str(error))

    def test_only_exposed_methods_can_be_called(self):
        self.collector()
        self.refused('NoSuchMethod', 'on_overrides', host='node1')

    def test_version_from_the_future_is_refused(self):
        self.collector()
        self.refused(
            'UnsupportedVersion', 'overrides', version='2.0', host='node1'
        )

    def test_cast_reaches_the_named_host_only(self):
        first, second = Agent(), Agent()
        self.serve(agent_rpc.TOPIC, 'node1', first)
        self.serve(agent_rpc.TOPIC, 'node2', second)
        client = self.agent_client()
        client.overrides_changed('node1', 7)
        client.overrides_changed('node2', 8)
        self.assertEqual(7, first.generations.get(timeout=PATIENCE_S))
        self.assertEqual(8, second.generations.get(timeout=PATIENCE_S))
        self.assertTrue(first.generations.empty())

    def test_requests_are_known_on_the_other_side(self):
        self.useFixture(context_fixture.ClearRequestContext())
        collector = self.collector()
        for batch in (1, 2):
            self.client().report(report(batch))
            self.assertTrue(collector.requests[-1]['request_id'])
        first, second = (one['request_id'] for one in collector.requests)
        self.assertNotEqual(first, second)
        agent = Agent()
        self.serve(agent_rpc.TOPIC, 'node1', agent)
        told = {'request_id': 'req-1', 'user_id': 'ann'}
        self.agent_client().overrides_changed('node1', 7, told)
        self.assertEqual(7, agent.generations.get(timeout=PATIENCE_S))
        self.assertEqual(told, agent.request)

    def test_cast_to_nobody_is_no_error(self):
        self.agent_client().overrides_changed('nowhere', 1)

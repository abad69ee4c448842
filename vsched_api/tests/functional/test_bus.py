# SPDX-License-Identifier: Apache-2.0

"""The collector and the API on a real broker."""

import threading
import time

import sqlalchemy as sa

from vsched_api.db import session
from vsched_api.operations import events
from vsched_api.operations import host_keys
from vsched_api.operations import hosts
from vsched_api.operations import profiles
from vsched_api.operations import reservations
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_api.tests import bus_case
from vsched_api.tests import doors
from vsched_lib.contract import agent_rpc
from vsched_lib.contract import collector_replies
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.tests import bus_keys
from vsched_lib.tests import error_profiles
from vsched_lib.tests import rpc_suite

#: Long enough for any machine; a test that passes never waits for it.
PATIENCE_S = 60

#: Before the clocks of real services.
PAST = 1_750_000_000.0


class TestBus(bus_case.BusTestCase):
    """RabbitMQ between an agent and two collectors on PostgreSQL."""

    def setUp(self):
        super().setUp()
        database_url = sa.make_url(self.conf.database.connection)
        self.door = doors.Door((database_url.host, database_url.port))
        self.door.open()
        self.addCleanup(self.door.shut)
        self.conf.set_override(
            'connection',
            database_url.set(
                host='127.0.0.1', port=self.door.port
            ).render_as_string(hide_password=False),
            'database',
        )
        for name in ('one', 'two'):
            self.serve(name)
        self.bus = self.bus_of(base.HOST)

    def bus_of(self, host):
        """The way to the collector of a host with a key."""
        host_keys.issue(session.Database(self.conf), host, PAST)
        return collector_rpc.CollectorClient(
            self.transport, PATIENCE_S, bus_keys.signer(host)
        )

    def report(self, number, **parts):
        return self.bus.report(
            messages.Report(
                base.HOST,
                number,
                PAST + number,
                epoch='e' * 32,
                sent_at=time.time(),
                **parts,
            )
        )

    def test_reports_get_there(self):
        (one,) = base.uuids(1)
        reply = self.report(
            1,
            host_info=base.host_info(),
            instances=(messages.InstanceInfo(one, 'vm', 1),),
            reservations=(base.reservation(one),),
            usage=(base.sample(one),),
            events=(base.event(),),
        )
        self.assertEqual(
            collector_replies.ReportReply(False, 0, False, last_batch=1), reply
        )
        self.assertTrue(self.report(1).duplicate)
        self.assertEqual(
            base.host_info(),
            hosts.get(self.database, base.HOST, self.now, 30).info,
        )
        self.assertEqual('applied', reservations.get(self.database, one).state)
        self.assertEqual(1, len(usage.page(self.database, 10)))
        self.assertEqual(1, len(events.page(self.database, 10)))

    def test_a_change_is_heard_at_once_and_asked_for(self):
        (one,) = base.uuids(1)
        self.report(
            1,
            host_info=base.host_info(),
            instances=(messages.InstanceInfo(one, 'vm', 1),),
            reservations=(base.reservation(one),),
        )
        agent = rpc_suite.Agent()
        server = rpc.get_server(
            self.transport, agent_rpc.TOPIC, base.HOST, [agent]
        )
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        answer = self.client(self.transport).patch(
            '/v1/reservations/' + one, json={'runtime_us': 6_000}
        )
        self.assertEqual(202, answer.status_code)
        generation = answer.json['reservation']['generation']
        self.assertEqual(generation, agent.generations.get(timeout=PATIENCE_S))
        known = self.bus.overrides(base.HOST)
        self.assertEqual(generation, known.generation)
        self.assertEqual(6_000, known.overrides[0].runtime_us)
        self.assertRaises(
            errors.Unauthenticated, self.bus.overrides, 'nowhere'
        )

    def test_a_job_is_heard_of_at_once_asked_for_and_told_of(self):
        self.report(1, host_info=base.host_info(), instances=())
        agent = rpc_suite.Agent()
        server = rpc.get_server(
            self.transport, agent_rpc.TOPIC, base.HOST, [agent]
        )
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        http = self.client(self.transport)
        answer = http.post(
            '/v1/hosts/%s/profiles/error' % base.HOST, json={'contend': 4}
        )
        self.assertEqual(202, answer.status_code)
        self.assertEqual(
            ('jobs', 1), agent.generations.get(timeout=PATIENCE_S)
        )
        known = self.bus.jobs(base.HOST)
        (order,) = known.orders
        self.assertEqual(
            (1, {'contend': 4}), (known.generation, order.parameters)
        )
        told = error_profiles.full(windows=20)
        reply = self.report(
            2,
            error_profiles=(told,),
            jobs=(
                messages.JobReport(
                    order.uuid,
                    order.attempt,
                    messages.JobState.DONE,
                    1_000_000,
                    PAST,
                ),
            ),
        )
        self.assertEqual((False, 1), (reply.resync, reply.jobs_generation))
        self.assertEqual(messages.Jobs(1), self.bus.jobs(base.HOST))
        self.assertEqual(
            'done', http.get('/v1/jobs/' + order.uuid).json['job']['state']
        )
        self.assertEqual([told], profiles.newest(self.database, base.HOST))
        self.assertRaises(errors.Unauthenticated, self.bus.jobs, 'nowhere')

    def test_what_can_not_be_read_does_not_hold_up_the_rest(self):
        raw = messages.Report(base.HOST, 1, PAST, epoch='e' * 32).to_dict()
        raw['usage'] = [{'at': 'noon'}]
        reply = collector_replies.ReportReply.from_dict(
            self.bus._call('report', lambda _: {'report': raw})
        )
        self.assertTrue(reply.resync)
        self.assertFalse(self.report(2).duplicate)
        (told,) = events.page(self.database, 10)
        self.assertEqual(errors.Code.REPORT_REJECTED, told.code)

    def test_a_database_that_is_away_leaves_batches_with_the_agent(self):
        (one,) = base.uuids(1)
        self.report(1)
        self.door.shut()
        self.assertRaises(errors.Unreachable, self.report, 2)
        self.assertRaises(errors.Unreachable, self.bus.overrides, base.HOST)
        self.door.open()
        self.assertFalse(self.report(2, usage=(base.sample(one),)).duplicate)
        self.assertEqual(1, len(usage.page(self.database, 10)))

    def test_many_agents_at_once(self):
        agents, rounds, failed = 8, 10, []

        def run(name):
            client = clients[name]
            uuids = base.uuids(4)
            try:
                for number in range(1, rounds + 1):
                    client.report(
                        messages.Report(
                            name,
                            number,
                            PAST + number,
                            instances=tuple(
                                messages.InstanceInfo(one, 'v', 1)
                                for one in uuids
                            ),
                            usage=tuple(
                                base.sample(one, PAST + number)
                                for one in uuids
                            ),
                        )
                    )
            except Exception as error:
                failed.append(error)

        clients = {
            name: self.bus_of(name)
            for name in ('node%d' % number for number in range(agents))
        }
        threads = [
            threading.Thread(target=run, args=(name,)) for name in clients
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], failed)
        self.assertEqual(
            agents * rounds * 4, len(usage.page(self.database, 10_000))
        )

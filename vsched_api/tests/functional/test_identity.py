# SPDX-License-Identifier: Apache-2.0

"""What a node may do to others over the bus: nothing.

Against a collector on RabbitMQ and PostgreSQL. An attacker has access to
the broker, and the key of one host.
"""

import oslo_messaging as messaging

from vsched_api.db import models
from vsched_api.operations import host_keys
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_api.tests import bus_case
from vsched_lib.contract import bus
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.contract import signing
from vsched_lib.tests import bus_garbage
from vsched_lib.tests import bus_keys
from vsched_lib.tests import rpc_suite

PATIENCE_S = 120
#: Four times as many as a collector answers at a time.
MANY = 256
EPOCH = 'e' * 32


def _request(**changes):
    """A request without a signature."""
    return bus_garbage.request('jobs', {'host': 'victim'}, **changes)


class TestIdentity(bus_case.BusTestCase):
    """A host speaks for itself only, and only who has its key."""

    def setUp(self):
        super().setUp()
        for host in ('victim', 'attacker'):
            host_keys.issue(self.database, host, base.NOW)
        self.raw = messaging.get_rpc_client(
            self.transport,
            messaging.Target(topic=collector_rpc.TOPIC, version='1.0'),
            timeout=PATIENCE_S,
        )

    def client(self, host, **more):
        return collector_rpc.CollectorClient(
            self.transport, PATIENCE_S, bus_keys.signer(host, **more)
        )

    def send(self, signed, method, **arguments):
        """A request as an attacker puts it together."""
        context = (
            {} if signed is None else {signing.FIELD: signed[1].to_dict()}
        )
        return self.raw.call(context, method, **arguments)

    def refused(self, signed, method, **arguments):
        error = self.assertRaises(
            messaging.RemoteError, self.send, signed, method, **arguments
        )
        self.assertEqual('Unauthenticated', error.exc_type)

    def report(self, host='victim', number=1, **parts):
        return messages.Report(
            host,
            number,
            base.NOW,
            **{
                'epoch': EPOCH,
                'host_info': base.host_info(),
                'instances': (),
                **parts,
            },
        )

    def count(self, row):
        return self.database.read(lambda session: session.query(row).count())

    def test_nobody_reports_or_asks_for_another_host(self):
        self.serve()
        mine = bus_keys.signer('attacker')
        poison = self.report(number=2**53).to_dict()
        for signed in (
            None,
            mine.sign('report', {'report': poison}),
            bus_keys.signer('victim', master='6b' * 32).sign(
                'report', {'report': poison}
            ),
        ):
            self.refused(signed, 'report', report=poison)
        for method in ('overrides', 'jobs'):
            for signed in (None, mine.sign(method, {'host': 'victim'})):
                self.refused(signed, method, host='victim')
        # Nothing that strangers send makes a database grow.
        for number in range(100):
            raw = self.report('stranger%d' % number).to_dict()
            self.refused(
                bus_keys.signer(raw['host'], master='6b' * 32).sign(
                    'report', {'report': raw}
                ),
                'report',
                report=raw,
            )
        self.assertEqual(
            (0, 0, 2),
            (
                self.count(models.Host),
                self.count(models.Event),
                self.count(models.HostKey),
            ),
        )
        # The victim's own report is stored as ever.
        reply = self.client('victim').report(self.report())
        self.assertEqual((False, 1), (reply.duplicate, reply.last_batch))

    def test_what_was_recorded_changes_nothing(self):
        self.serve()
        (one,) = base.uuids(1)
        signer = bus_keys.signer('victim')
        first = self.report(usage=(base.sample(one),)).to_dict()
        signed = signer.sign('report', {'report': first})
        self.send(signed, 'report', report=first)
        asked = signer.sign('overrides', {'host': 'victim'})
        self.send(asked, 'overrides', host='victim')
        # Later, the agent has another run.
        self.assertFalse(
            self.client('victim', epoch='f' * 32)
            .report(self.report(epoch='f' * 32, after=1))
            .duplicate
        )
        reply = self.send(signed, 'report', report=first)
        self.assertEqual('replaced', reply['epoch_state'])
        self.refused(asked, 'overrides', host='victim')
        # A part of it under another name or with another content.
        self.refused(signed, 'report', report={**first, 'batch': 7})
        self.refused(signed, 'report', report={**first, 'host': 'attacker'})
        self.assertEqual(1, len(usage.page(self.database, 10)))

    def test_nobody_answers_as_the_collector(self):
        impostor = rpc_suite.Collector()
        server = rpc.get_server(
            self.transport, collector_rpc.TOPIC, 'impostor', [impostor]
        )
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        client = self.client('victim')
        for ask in (
            lambda: client.report(self.report()),
            lambda: client.overrides('victim'),
            lambda: client.jobs('victim'),
        ):
            error = self.assertRaises(errors.Unauthenticated, ask)
            self.assertIn('not signed', str(error))

        # One that has the key of another host, and signs with that.
        class Other(collector_rpc.Caller):
            host = None

            def __init__(self, request):
                self.request = signing.Envelope.from_dict(request)

            def seal(self, method, reply):
                return signing.sign_reply(
                    bus_keys.key('attacker'), self.request, method, reply
                )

        impostor.authenticator = collector_rpc.Authenticator()
        impostor.authenticator.admit = (
            lambda method, arguments, signature, reads: Other(signature)
        )
        error = self.assertRaises(
            errors.Unauthenticated, client.report, self.report()
        )
        self.assertIn('wrong signature', str(error))

    def test_without_a_key_nothing_is_sent(self):
        self.serve()
        client = collector_rpc.CollectorClient(
            self.transport,
            PATIENCE_S,
            signing.Signer(
                signing.Mode.REQUIRED, 'victim', lambda: None, lambda: EPOCH
            ),
        )
        error = self.assertRaises(
            errors.Unauthenticated, client.report, self.report()
        )
        self.assertIn('host-key issue victim', str(error))
        self.assertEqual(0, self.count(models.Host))

    def test_a_collector_does_not_start_without_its_key_or_care(self):
        self.conf.clear_override('master_key_file', 'bus')
        self.assertIn(
            'master-key create',
            str(self.assertRaises(signing.KeyFileError, self.serve)),
        )
        self.conf.set_override('authentication', 'none', 'bus')
        self.assertIn(
            'in memory only', str(self.assertRaises(bus.UnsafeBus, self.serve))
        )

    def test_permissive_takes_what_is_not_signed(self):
        self.conf.set_override('authentication', 'permissive', 'bus')
        self.serve()
        raw = self.report().to_dict()
        self.assertFalse(self.send(None, 'report', report=raw)['duplicate'])
        self.refused(
            bus_keys.signer('victim', master='6b' * 32).sign(
                'report', {'report': raw}
            ),
            'report',
            report=raw,
        )

    def publish(self, bodies, content_type='application/json'):
        """Send to collectors what need not be a request."""
        bus_garbage.publish(
            self.url, 'vsched', collector_rpc.TOPIC, bodies, content_type
        )

    def flood(self):
        """Ask for replies in queues that do not exist, without a key."""
        self.publish(bus_garbage.envelope(_request()) for _ in range(MANY))

    def test_replies_that_nobody_takes_hold_nobody_up(self):
        collector = self.serve()
        victim = self.client('victim')
        self.assertFalse(victim.report(self.report()).duplicate)
        self.flood()
        # It is behind them in the queue.
        reply = victim.report(self.report(number=2))
        self.assertEqual((False, 2), (reply.duplicate, reply.last_batch))
        # Those that are still answered are fewer than its threads.
        self.assertGreater(
            collector._collector.authenticator.refused, MANY * 3 // 4
        )

    def test_what_is_no_request_holds_nobody_up(self):
        self.serve()
        victim = self.client('victim')
        self.assertFalse(victim.report(self.report()).duplicate)
        before = self.count(models.Event)
        sent = [
            *bus_garbage.messages(_request),
            *(
                bus_garbage.envelope(_request(method=method, args=arguments))
                for method in ('report', 'overrides', 'jobs')
                for arguments in ({}, {'host': {}}, {'report': 7, 'host': 7})
            ),
            *(
                bus_garbage.envelope(
                    _request(**{'_context_' + signing.FIELD: odd})
                )
                for odd in bus_garbage.ODD
            ),
        ]
        self.assertGreater(len(sent), 150)
        self.publish(sent)
        self.publish(sent[:20], 'application/x-python-serialize')
        for number in range(2, 5):
            reply = victim.report(self.report(number=number))
            self.assertEqual(
                (False, number), (reply.duplicate, reply.last_batch)
            )
        self.assertEqual(
            (1, before), (self.count(models.Host), self.count(models.Event))
        )

# SPDX-License-Identifier: Apache-2.0

"""What a collector counts, and from where it is read."""

import dataclasses
import http.client
import os
import socket
import ssl
import subprocess
from unittest import mock

import fixtures
from prometheus_client import parser

from vsched_api.collector import endpoint
from vsched_api.collector import metrics
from vsched_api.collector import service
from vsched_api.db import errors as db_errors
from vsched_api.metric_families import collector as families
from vsched_api.operations import retention
from vsched_api.tests import base
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.contract import wire
from vsched_lib.metrics import family
from vsched_lib.metrics import server
from vsched_lib.tests import bus_keys
from vsched_lib.tests import ports

PATIENCE_S = 60


def samples(found):
    """Return values by name and labels.

    :param found: metrics.
    """
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for metric in found
        for sample in metric.samples
    }


class CollectorCase(base.TestCase):
    def setUp(self):
        super().setUp()
        self.served = self.collector()

    def value(self, name, **labels):
        found = samples(self.served.metrics.exposed().collect())
        return found[('vsched_collector_' + name, *sorted(labels.items()))]

    def refused(self):
        """Return the causes that were counted."""
        found = {
            cause: self.value('batches_refused_total', cause=cause)
            for cause in metrics.CAUSES
        }
        return {cause: count for cause, count in found.items() if count}

    def report(self, number=1, **parts):
        return self.served.on_report(
            messages.Report(
                base.HOST, number, parts.pop('at', base.NOW), **parts
            )
        )


class TestBatches(CollectorCase):
    def test_stored_and_repeated(self):
        (one,) = base.uuids(1)
        for number in (1, 2, 2):
            self.report(
                number,
                usage=(base.sample(one), base.sample(one, base.NOW + 1)),
                host_usage=(base.host_usage(),),
                events=(base.event(), base.event(code='vsched.new.one')),
            )
        self.assertEqual(2, self.value('batches_stored_total'))
        self.assertEqual(1, self.value('batches_repeated_total'))
        self.assertEqual({}, self.refused())
        self.assertEqual(3, self.value('batch_duration_seconds_count'))
        for subject, count in (('instances', 4), ('hosts', 2)):
            self.assertEqual(
                count, self.value('samples_stored_total', subject=subject)
            )
        for code, count in (
            (errors.Code.AGENT_STARTED, 2),
            (errors.Code.DRIFT_REPAIRED, 0),
            ('other', 2),
        ):
            self.assertEqual(count, self.value('events_total', code=code))

    def test_how_long_batches_waited(self):
        self.report(1)
        self.assertEqual(0, self.value('outbox_age_seconds_count'))
        # By the agent's clock, which may be wrong.
        self.report(2, at=base.NOW - 9_000, sent_at=base.NOW - 8_960)
        self.report(3, sent_at=base.NOW - 5)
        self.assertEqual(2, self.value('outbox_age_seconds_count'))
        self.assertEqual(40, self.value('outbox_age_seconds_sum'))

    def test_malformed(self):
        problem = wire.MalformedMessage('x')
        self.served.on_malformed_report(
            {'host': base.HOST, 'batch': 1}, problem
        )
        self.assertRaises(
            wire.MalformedMessage, self.served.on_malformed_report, {}, problem
        )
        self.assertEqual({'invalid': 2}, self.refused())
        self.assertEqual(0, self.value('batches_stored_total'))

    def test_a_value_that_cannot_be_stored(self):
        with mock.patch(
            'vsched_api.operations.inspection.rows',
            autospec=True,
            side_effect=db_errors.UnstorableValue('x'),
        ):
            self.report(1, instances=())
        self.assertEqual({'invalid': 1}, self.refused())
        self.assertEqual(0, self.value('batches_stored_total'))

    def test_a_database_that_is_unavailable(self):
        for problem, cause in (
            (db_errors.DatabaseUnavailable, 'database'),
            (db_errors.DatabaseBusy, 'database'),
            (KeyError, 'defect'),
        ):
            with mock.patch(
                'vsched_api.operations.gathering.Gathering.store',
                autospec=True,
                side_effect=problem('x'),
            ):
                before = self.refused().get(cause, 0)
                self.assertRaises(problem, self.report)
                self.assertEqual(before + 1, self.refused()[cause])
        self.assertEqual(3, self.value('batch_duration_seconds_count'))

    def test_epochs(self):
        old, new = 'a' * 32, 'b' * 32
        self.report(1, epoch=old)
        self.report(2, epoch=new)
        self.assertEqual({'unopened': 1}, self.refused())
        self.report(2, epoch=new, after=1)
        self.report(3, epoch=old)
        self.assertEqual({'unopened': 1, 'replaced': 1}, self.refused())
        self.assertEqual(2, self.value('batches_stored_total'))


class TestSignatures(CollectorCase):
    def setUp(self):
        super().setUp()
        path = bus_keys.write(
            self.useFixture(fixtures.TempDir()).path,
            'master.key',
            bus_keys.MASTER,
        )
        self.conf.set_override('master_key_file', path, 'bus')
        transport = rpc.get_transport(self.conf, 'rabbit://127.0.0.1:1')
        self.addCleanup(transport.cleanup)
        self.served = endpoint.Collector(
            self.conf, lambda: self.now, transport
        )
        self.addCleanup(self.served.database.dispose)

    def test_requests_without_a_signature(self):
        report = messages.Report(base.HOST, 1, base.NOW).to_dict()
        self.assertRaises(
            errors.Unauthenticated,
            self.served.authenticator.admit,
            'report',
            {'report': report},
            None,
            False,
        )
        self.assertEqual(1, self.value('requests_unauthenticated_total'))
        self.assertEqual(0, self.value('requests_unsigned_total'))


class TestTasks(base.TestCase):
    def setUp(self):
        super().setUp()
        self.at = 100.0
        self.metrics = metrics.Metrics(
            ('fold_usage',), iter(range(100)).__next__, lambda: self.at
        )

    def value(self, name, **labels):
        found = samples(self.metrics.exposed().collect())
        return found[('vsched_collector_' + name, *sorted(labels.items()))]

    def check(self, success, failures, runs):
        for name, value in (
            ('last_success_timestamp_seconds', success),
            ('failures_total', failures),
            ('duration_seconds_count', runs),
            ('duration_seconds_sum', runs),
        ):
            self.assertEqual(
                value, self.value('task_' + name, task='fold_usage'), name
            )

    def test_runs(self):
        self.check(100.0, 0, 0)
        self.at = 200.0
        with self.metrics.task('fold_usage'):
            pass
        self.check(200.0, 0, 1)
        self.at = 300.0
        try:
            with self.metrics.task('fold_usage'):
                raise KeyError('x')
        except KeyError:
            pass
        self.check(200.0, 1, 2)

    def test_deleted_rows(self):
        counts = retention.purge(self.database, self.conf, self.now)
        self.metrics.delete(counts)
        self.metrics.delete({'events': 3})
        self.assertEqual(3, self.value('rows_deleted_total', kind='events'))
        self.assertEqual(0, self.value('rows_deleted_total', kind='usage'))

    def test_every_family_is_exposed_and_no_other(self):
        found = list(self.metrics.exposed().collect())
        self.assertEqual(
            {
                one.name.removesuffix('_total'): (
                    'gauge' if one.kind is family.Kind.INFO else one.kind
                )
                for one in families.ALL
            },
            {
                one.name: one.type
                for one in found
                if one.name.startswith('vsched_')
            },
        )
        self.assertIn(
            'process_resident_memory_bytes', {one.name for one in found}
        )


class TestServer(base.TestCase):
    """The collector's own endpoint."""

    def setUp(self):
        super().setUp()
        self.port = ports.reserve()

    def configure(self, **options):
        for name, value in options.items():
            self.conf.set_override('metrics_' + name, value, 'collector')

    def start(self, **more):
        transport = rpc.get_transport(self.conf, 'fake://')
        made = service.Service(self.conf, transport, 'one', **more)
        made.start()
        self.addCleanup(made.stop)
        return made

    def read(self, context=None):
        connection = (
            http.client.HTTPConnection(
                '127.0.0.1', self.port, timeout=PATIENCE_S
            )
            if context is None
            else http.client.HTTPSConnection(
                'localhost', self.port, timeout=PATIENCE_S, context=context
            )
        )
        self.addCleanup(connection.close)
        connection.request('GET', '/metrics')
        answer = connection.getresponse()
        self.assertEqual(200, answer.status)
        return samples(
            parser.text_string_to_metric_families(answer.read().decode())
        )

    def test_it_is_off_by_default(self):
        self.assertEqual(0, self.start().metrics_port)

    def test_it_is_read(self):
        self.configure(bind_port=self.port)
        running = self.start()
        self.assertEqual(self.port, running.metrics_port)
        found = self.read()
        for task in (
            'fold_usage',
            'learn_slowdowns',
            'tend_snapshot',
            'purge_old_rows',
            'verify_hosts',
        ):
            self.assertIn(
                ('vsched_collector_task_failures_total', ('task', task)), found
            )

    def test_processes_have_a_port_each(self):
        self.configure(bind_port=self.port - 2)
        self.assertEqual(self.port, self.start(process=2).metrics_port)
        self.assertTrue(self.read())

    def test_only_the_process_that_runs_tasks_has_their_metrics(self):
        found = samples(
            self.start(tends=False)._collector.metrics.exposed().collect()
        )
        self.assertIn(('vsched_collector_batches_stored_total',), found)
        self.assertEqual(
            [], [one for one in found if '_collector_task_' in one[0]]
        )

    def test_runs_of_tasks_are_counted(self):
        running = self.start()
        tasks = running._tasks
        tasks._fold_usage()
        tasks._purge_old_rows()
        with mock.patch.object(
            retention,
            'purge',
            autospec=True,
            side_effect=db_errors.DatabaseUnavailable('x'),
        ):
            tasks._purge_old_rows()
        found = samples(running._collector.metrics.exposed().collect())
        for task, runs, failures in (
            ('fold_usage', 1, 0),
            ('purge_old_rows', 2, 1),
        ):
            for name, count in (
                ('duration_seconds_count', runs),
                ('failures_total', failures),
            ):
                self.assertEqual(
                    count,
                    found['vsched_collector_task_' + name, ('task', task)],
                )
        self.assertIn(
            ('vsched_collector_rows_deleted_total', ('kind', 'events')), found
        )

    def test_a_port_that_is_in_use(self):
        with socket.create_server(('127.0.0.1', 0)) as taken:
            self.configure(bind_port=taken.getsockname()[1])
            error = self.assertRaises(
                server.UnusableEndpoint, self.server().start
            )
        self.assertIn('127.0.0.1', str(error))

    def test_a_port_that_does_not_exist(self):
        self.configure(bind_port=65_535)
        error = self.assertRaises(
            server.UnusableEndpoint, self.server(port=65_536).start
        )
        self.assertIn('port 65536', str(error))

    def server(self, **more):
        made = server.Server(
            dataclasses.replace(
                server.Settings.of(self.conf, 'collector'), **more
            ),
            metrics.Metrics().exposed(),
        )
        self.addCleanup(made.stop)
        return made

    def test_options_that_contradict_each_other(self):
        self.configure(bind_port=self.port)
        for options in (
            {'cert_file': 'x'},
            {'cert_file': None, 'key_file': 'x'},
            {'key_file': None, 'client_ca_file': 'x'},
            # Not over HTTP instead.
            {'cert_file': '/nowhere', 'key_file': '/nowhere'},
        ):
            self.configure(**options)
            self.assertRaises(server.UnusableEndpoint, self.server().start)

    def certificate(self, folder, name):
        """Make one that signs itself, and return its files."""
        paths = [os.path.join(folder, name + end) for end in ('.crt', '.key')]
        subprocess.run(
            [
                'openssl',
                'req',
                '-x509',
                '-newkey',
                'ec',
                '-pkeyopt',
                'ec_paramgen_curve:prime256v1',
                '-nodes',
                '-days',
                '2',
                '-subj',
                '/CN=localhost',
                '-addext',
                'subjectAltName=DNS:localhost',
                '-out',
                paths[0],
                '-keyout',
                paths[1],
            ],
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        return paths

    def test_tls(self):
        folder = self.useFixture(fixtures.TempDir()).path
        own, client, stranger = (
            self.certificate(folder, name)
            for name in ('own', 'client', 'stranger')
        )
        self.configure(
            bind_port=self.port,
            cert_file=own[0],
            key_file=own[1],
            client_ca_file=client[0],
        )
        self.start()
        # It does not finish its handshake, and holds nobody up.
        silent = socket.create_connection(
            ('127.0.0.1', self.port), timeout=PATIENCE_S
        )
        self.addCleanup(silent.close)
        context = ssl.create_default_context(cafile=own[0])
        context.load_cert_chain(*client)
        self.assertIn(
            ('vsched_collector_batches_stored_total',), self.read(context)
        )
        for files in (None, stranger):
            context = ssl.create_default_context(cafile=own[0])
            if files is not None:
                context.load_cert_chain(*files)
            self.assertRaises(
                (OSError, http.client.HTTPException), self.read, context
            )
        self.assertRaises((OSError, http.client.HTTPException), self.read)

# SPDX-License-Identifier: Apache-2.0

"""How requests are counted and timed."""

import os
from unittest import mock

import fixtures
from prometheus_client import values

from vsched_api import app
from vsched_api.rest import request_metrics
from vsched_api.tests import base


class RequestMetricsCase(base.TestCase):
    def counts(self, metrics):
        """Return the counts by route, method and class of status.

        Series at 0 are left out.
        """
        return {
            (
                sample.labels['route'],
                sample.labels['method'],
                sample.labels['status'],
            ): sample.value
            for metric in metrics.collect()
            for sample in metric.samples
            if sample.name == 'vsched_api_requests_total' and sample.value
        }

    def durations(self, metrics):
        """Return the number and the sum of durations by route and method."""
        found = {}
        for metric in metrics.collect():
            for sample in metric.samples:
                for name, place in (('_count', 0), ('_sum', 1)):
                    if sample.name.endswith('_duration_seconds' + name):
                        labels = (
                            sample.labels['route'],
                            sample.labels['method'],
                        )
                        found.setdefault(labels, [0, 0])[place] = sample.value
        return found


class TestRequestMetrics(RequestMetricsCase):
    def request(self, client, method, path, **more):
        client.open(path, method=method, **more).close()

    def test_failures_at_zero_are_there(self):
        client = self.client()
        self.request(client, 'GET', '/v1/hosts')
        metrics = client.application.extensions['vsched'].requests
        self.assertEqual(
            [('/v1/hosts', '2xx', 1.0), ('/v1/hosts', '5xx', 0.0)],
            sorted(
                (sample.labels['route'], sample.labels['status'], sample.value)
                for metric in metrics.collect()
                for sample in metric.samples
                if sample.name == 'vsched_api_requests_total'
            ),
        )

    def test_routes_are_templates(self):
        self.agent().first()
        client = self.client()
        for name in ('node1', 'node2', 'node3'):
            self.request(client, 'GET', '/v1/hosts/' + name)
        self.request(client, 'GET', '/v1/hosts')
        self.request(client, 'GET', '/v1/hosts?limit=x')
        self.request(client, 'PATCH', '/v1/hosts')
        self.request(client, 'BREW', '/v1/hosts')
        for number in range(10):
            self.request(client, 'GET', '/nowhere/%d' % number)
        metrics = client.application.extensions['vsched'].requests
        self.assertEqual(
            {
                ('/v1/hosts/<name>', 'GET', '2xx'): 1.0,
                ('/v1/hosts/<name>', 'GET', '4xx'): 2.0,
                ('/v1/hosts', 'GET', '2xx'): 1.0,
                ('/v1/hosts', 'GET', '4xx'): 1.0,
                ('unmatched', 'PATCH', '4xx'): 1.0,
                ('unmatched', 'other', '4xx'): 1.0,
                ('unmatched', 'GET', '4xx'): 10.0,
            },
            self.counts(metrics),
        )
        self.assertEqual(
            3, self.durations(metrics)['/v1/hosts/<name>', 'GET'][0]
        )

    def test_failures(self):
        client = self.client()
        with mock.patch(
            'vsched_api.operations.hosts.page',
            autospec=True,
            side_effect=RuntimeError,
        ):
            self.request(client, 'GET', '/v1/hosts')
        self.assertEqual(
            {('/v1/hosts', 'GET', '5xx'): 1.0},
            self.counts(client.application.extensions['vsched'].requests),
        )

    def test_bodies_that_are_refused_before_a_route_is_found(self):
        client = self.client()
        self.request(
            client,
            'POST',
            '/v1/evaluations',
            data=b'x' * 100_000,
            content_type='application/json',
        )
        self.assertEqual(
            {('unmatched', 'POST', '4xx'): 1.0},
            self.counts(client.application.extensions['vsched'].requests),
        )

    def test_checks_by_load_balancers_are_not_counted(self):
        client = self.client()
        self.request(client, 'GET', app.LIVENESS)
        self.assertEqual(
            {}, self.counts(client.application.extensions['vsched'].requests)
        )

    def test_time_until_the_answer_is_read(self):
        clock = iter((10.0, 12.5)).__next__
        metrics = request_metrics.RequestMetrics(clock)

        def served(environ, start):
            start('204 No Content', [])
            return [b'']

        answer = metrics.wrap(served)({'REQUEST_METHOD': 'GET'}, mock.Mock())
        self.assertEqual({}, self.counts(metrics))
        list(answer)
        answer.close()
        self.assertEqual(
            {('unmatched', 'GET', '2xx'): 1.0}, self.counts(metrics)
        )
        self.assertEqual([1, 2.5], self.durations(metrics)['unmatched', 'GET'])

    def test_an_application_that_raises(self):
        metrics = request_metrics.RequestMetrics()

        def broken(environ, start):
            raise KeyError('x')

        self.assertRaises(
            KeyError,
            metrics.wrap(broken),
            {'REQUEST_METHOD': 'GET'},
            mock.Mock(),
        )
        self.assertEqual(
            {('unmatched', 'GET', '5xx'): 1.0}, self.counts(metrics)
        )


class TestWorkers(RequestMetricsCase):
    """Several processes behind one address."""

    def setUp(self):
        super().setUp()
        self.folder = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'metrics'
        )
        self.useFixture(
            fixtures.EnvironmentVariable(
                request_metrics.FOLDER_VARIABLE, self.folder
            )
        )
        self.addCleanup(setattr, values, 'ValueClass', values.ValueClass)

    def count(self, metrics, times):
        def served(environ, start):
            start('200 OK', [])
            return []

        for _ in range(times):
            metrics.wrap(served)(
                {'REQUEST_METHOD': 'GET'}, mock.Mock()
            ).close()

    def test_the_sum_of_all(self):
        worker = [1]
        request_metrics.share(lambda: worker[0])
        metrics = request_metrics.RequestMetrics()
        self.count(metrics, 2)
        # As after a fork.
        worker[0] = 2
        self.count(metrics, 3)
        self.assertEqual(
            {('unmatched', 'GET', '2xx'): 5.0}, self.counts(metrics)
        )
        self.assertEqual(5, self.durations(metrics)['unmatched', 'GET'][0])
        # One that is started again goes on.
        worker[0] = 1
        self.count(metrics, 1)
        self.assertEqual(
            {('unmatched', 'GET', '2xx'): 6.0}, self.counts(metrics)
        )
        self.assertEqual(4, len(os.listdir(self.folder)))

    def test_files_of_an_earlier_service_are_removed(self):
        os.mkdir(self.folder)
        for name in ('counter_1.db', 'other'):
            with open(os.path.join(self.folder, name), 'w'):
                pass
        request_metrics.share(lambda: 1)
        self.assertEqual(['other'], os.listdir(self.folder))

    def test_a_folder_that_cannot_be_used(self):
        with open(self.folder, 'w'):
            pass
        self.assertRaises(OSError, request_metrics.share, lambda: 1)
        metrics = request_metrics.RequestMetrics()
        self.count(metrics, 1)
        self.assertEqual(
            {('unmatched', 'GET', '2xx'): 1.0}, self.counts(metrics)
        )

    def test_without_a_folder(self):
        os.environ.pop(request_metrics.FOLDER_VARIABLE)
        found = values.ValueClass
        request_metrics.share(lambda: 1)
        self.assertIs(found, values.ValueClass)

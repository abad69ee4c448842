# SPDX-License-Identifier: Apache-2.0

"""A client made from the OpenAPI document is answered as it says."""

import schemathesis

from vsched_api import app
from vsched_api.rest import authorization
from vsched_api.rest import openapi_document
from vsched_api.tests import accepted_requests
from vsched_api.tests import base
from vsched_api.tests import generated_requests
from vsched_api.tests import populated

#: Of each kind of request to each operation; ``benchmarks/openapi.py`` sends
#: thirty times as many.
EACH = 5


class TestGeneratedRequests(base.TestCase):
    """Every operation, on a file."""

    def setUp(self):
        super().setUp()
        self.collected = self.collector()
        populated.fill(self.collected)

    def test_every_operation_keeps_to_the_document(self):
        accepted_requests.use_placement(self.conf, self)
        prepared = accepted_requests.Preparations(
            self.conf, self.collected, self.now
        )
        self.addCleanup(prepared.close)
        documented = {
            operation['operationId']: {
                int(status)
                for status in operation['responses']
                if status.startswith('2')
            }
            for methods in openapi_document.document()['paths'].values()
            for operation in methods.values()
        }
        self.assertLess(30, len(documented))
        successes, statuses = {}, set()
        for name, found in generated_requests.run(
            self.client().application,
            EACH,
            populated.names(self.database),
            preparations=prepared.all(),
        ):
            self.assertEqual([], found.server_errors, name)
            self.assertEqual([], found.invalid_answers, name)
            self.assertGreaterEqual(found.requests, EACH, name)
            successes[name] = set(found.successes)
            statuses.update(found.statuses)
        # Each of them has had every answer to a success that it has.
        self.assertEqual(documented, successes)
        # It can't have been all successes either.
        self.assertLessEqual({400, 404, 409}, statuses)

    def test_the_document_is_valid_by_the_specification(self):
        schema = schemathesis.openapi.from_wsgi(
            '/v1/openapi.json', self.client().application
        )
        self.assertEqual('3.1.1', schema.raw_schema['openapi'])
        schema.validate()

    def test_an_answer_that_differs_is_found(self):
        served = app.create_app(self.conf, now=lambda: self.now)
        self.addCleanup(served.extensions['vsched'].database.dispose)

        def show(name):
            authorization.enforce('vsched:hosts:show')
            return {'host': {'name': name}}

        served.view_functions['hosts.show'] = show
        found = dict(
            generated_requests.run(
                served,
                EACH,
                populated.names(self.database),
                only=('hosts_show', 'hosts_audit', 'hosts_index'),
            )
        )
        self.assertEqual(
            {'hosts_show', 'hosts_audit', 'hosts_index'}, set(found)
        )
        self.assertNotEqual([], found['hosts_show'].invalid_answers)
        # Placement is not configured.
        self.assertNotEqual([], found['hosts_audit'].server_errors)
        # Only valid ones are successes.
        for name in ('hosts_show', 'hosts_audit'):
            self.assertEqual(0, found[name].successes.total())
        self.assertLess(0, found['hosts_index'].successes.total())

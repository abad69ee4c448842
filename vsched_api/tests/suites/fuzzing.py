# SPDX-License-Identifier: Apache-2.0

"""No request breaks the service, and none costs a report."""

import os

from vsched_api.tests import base
from vsched_api.tests import fuzzer

#: Requests to each kind of database; more of them with this variable.
REQUESTS = int(os.environ.get('VSCHED_TEST_FUZZ_REQUESTS', '1500'))
SEED = int(os.environ.get('VSCHED_TEST_FUZZ_SEED', '1'))
#: After so many requests the agent reports.
_EACH = 50


class Fuzzing:
    """Requests made from routes and schemas, nearly right most often."""

    def test_no_request_is_answered_with_an_error_of_ours(self):
        agent = self.agent()
        instances = base.uuids(3)
        agent.first(*instances)
        client = self.client()
        made = fuzzer.Fuzzer(
            client.application,
            SEED,
            {
                'instance_uuid': instances,
                'name': [base.HOST],
                'host': [base.HOST],
                'hosts': [base.HOST],
                'kind': ['error', 'overhead'],
                'state': ['applied'],
            },
        )
        statuses = {}
        reports = 0
        for number in range(REQUESTS):
            request = made.request()
            reply = fuzzer.send(client, request)
            statuses[reply.status_code] = (
                statuses.get(reply.status_code, 0) + 1
            )
            # Placement is not configured here.
            if reply.status_code >= 500 and not (
                reply.status_code == 501 and '/audit' in str(request)
            ):
                self.fail(
                    'request %d of seed %d: %s: %d %s'
                    % (
                        number,
                        SEED,
                        request,
                        reply.status_code,
                        reply.get_data(as_text=True)[:2000],
                    )
                )
            if reply.status_code >= 400:
                self._check_problem(request, reply)
            if number % _EACH == 0:
                reports += 1
                agent.at = base.NOW + reports
                stored = agent.send(
                    *instances,
                    usage=tuple(
                        base.sample(one, agent.at) for one in instances
                    ),
                )
                self.assertFalse(stored.duplicate)
        # It can't have been all refusals, or little was tried.
        self.assertGreater(statuses.get(200, 0), REQUESTS // 20)
        self.assertGreater(statuses.get(400, 0), REQUESTS // 20)
        for one in instances:
            reply = client.get(
                '/v1/usage', query_string={'instance_uuid': one, 'limit': 1000}
            )
            self.assertEqual(reports, len(reply.json['usage']))

    def _check_problem(self, request, reply):
        """A refusal names its code, and does not quote all of it."""
        if request.method == 'HEAD' or not reply.data:
            return
        problems = reply.json['errors']
        self.assertTrue(
            all(one['code'] and one['title'] for one in problems),
            (request, reply.json),
        )
        self.assertLess(len(reply.data), 20_000, request)

# SPDX-License-Identifier: Apache-2.0

"""Whether the REST service answers requests as its OpenAPI document says."""

import typing as ty
import unittest

from benchmarks import frame
from vsched_api import app
from vsched_api.collector import endpoint
from vsched_api.tests import accepted_requests
from vsched_api.tests import base
from vsched_api.tests import database_options
from vsched_api.tests import databases
from vsched_api.tests import generated_requests
from vsched_api.tests import populated

ABOUT = frame.About(
    'Answers to requests made from the OpenAPI document',
    'schemathesis reads ``/v1/openapi.json`` as any client does and makes '
    'requests to every operation from it: one half are valid by the '
    'document, one half are not. Where a path has parameters one half of '
    'both name a host, an instance or a job that exists. Further valid '
    'requests are sent to operations that succeed only in a certain state, '
    'such as to delete a host whose agent has stopped; that state is restored '
    'before each of them. The service runs in this process, on a database in '
    'which everything is that agents report, and asks a real placement.\n\n'
    'A *server error* is an answer with a status of 500 or above. An '
    '*invalid answer* has a status, a media type, a header or a body that '
    'the document does not have for that operation, or accepts a request '
    'that is not valid by it. A run fails if an operation never answers with '
    'a success that the document has.',
    units={
        'requests': 'requests that were sent',
        'server_errors': 'answers with a status of 500 or above',
        'invalid_answers': 'answers that the document does not have',
    },
    targets=(
        frame.at_least('requests', 10_000, '', 'issue 20'),
        frame.at_most('server_errors', 0, '', 'issue 20'),
        frame.at_most('invalid_answers', 0, '', 'issue 20'),
    ),
)

#: Of each kind of request to each operation.
EACH = 160
_QUICK = 5
#: How many texts of what went wrong a record has for each operation.
_EXAMPLES = 3


def run(quick: bool) -> frame.Run:
    """One operation after the other."""
    test = unittest.TestCase()
    total = generated_requests.Outcome()
    refused: list[str] = []
    try:
        conf = database_options.configuration(databases.SQLite.make(test))
        collector = endpoint.Collector(conf, now=lambda: base.NOW)
        test.addCleanup(collector.database.dispose)
        populated.fill(collector)
        try:
            accepted_requests.use_placement(conf, test)
        except unittest.SkipTest as error:
            raise frame.Unavailable(str(error)) from error
        prepared = accepted_requests.Preparations(conf, collector)
        test.addCleanup(prepared.close)
        served = app.create_app(conf, now=lambda: base.NOW)
        test.addCleanup(served.extensions['vsched'].database.dispose)
        for name, found in generated_requests.run(
            served,
            _QUICK if quick else EACH,
            populated.names(collector.database),
            preparations=prepared.all(),
        ):
            total.statuses.update(found.statuses)
            total.server_errors.extend(found.server_errors)
            total.invalid_answers.extend(found.invalid_answers)
            if not found.successes:
                refused.append(name)
            yield frame.Variant(name, _figures(found))
    finally:
        test.doCleanups()
    if refused:
        raise AssertionError('no success of %s' % ', '.join(refused))
    return {
        'requests': total.requests,
        'server_errors': len(total.server_errors),
        'invalid_answers': len(total.invalid_answers),
    }


def _figures(found: generated_requests.Outcome) -> dict[str, ty.Any]:
    return {
        'requests': found.requests,
        'statuses': _by_status(found.statuses),
        'successes': _by_status(found.successes),
        'server_errors': len(found.server_errors),
        'invalid_answers': len(found.invalid_answers),
        'examples': [
            *found.server_errors[:_EXAMPLES],
            *found.invalid_answers[:_EXAMPLES],
        ],
    }


def _by_status(counts: ty.Counter[int]) -> dict[str, int]:
    return {str(status): count for status, count in sorted(counts.items())}

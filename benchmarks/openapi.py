# SPDX-License-Identifier: Apache-2.0

"""Whether the REST service answers requests as its OpenAPI document says."""

import typing as ty
import unittest

from benchmarks import frame
from vsched_api import app
from vsched_api.collector import endpoint
from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_api.tests import generated_requests
from vsched_api.tests import populated

ABOUT = frame.About(
    'Answers to requests made from the OpenAPI document',
    'schemathesis reads ``/v1/openapi.json`` as any client does and makes '
    'requests to every operation from it: one half are valid by the '
    'document, one half are not. Where a path has parameters one half of '
    'both name a host, an instance or a job that exists. The service runs in '
    'this process, on a database in which everything is that agents '
    'report.\n\n'
    'A *server error* is an answer with a status of 500 or above. An '
    '*invalid answer* has a status, a media type, a header or a body that '
    'the document does not have for that operation, or accepts a request '
    'that is not valid by it. Placement is not configured: 501 is the right '
    'answer of the audit, and no server error there.',
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
    try:
        conf = databases.configuration(databases.SQLite.make(test))
        collector = endpoint.Collector(conf, now=lambda: base.NOW)
        test.addCleanup(collector.database.dispose)
        populated.fill(collector)
        served = app.create_app(conf, now=lambda: base.NOW)
        test.addCleanup(served.extensions['vsched'].database.dispose)
        for name, found in generated_requests.run(
            served,
            _QUICK if quick else EACH,
            populated.names(collector.database),
            expected=populated.UNCONFIGURED,
        ):
            total.statuses.update(found.statuses)
            total.server_errors.extend(found.server_errors)
            total.invalid_answers.extend(found.invalid_answers)
            yield frame.Variant(name, _figures(found))
    finally:
        test.doCleanups()
    return {
        'requests': total.requests,
        'server_errors': len(total.server_errors),
        'invalid_answers': len(total.invalid_answers),
    }


def _figures(found: generated_requests.Outcome) -> dict[str, ty.Any]:
    return {
        'requests': found.requests,
        'statuses': {
            str(status): count
            for status, count in sorted(found.statuses.items())
        },
        'server_errors': len(found.server_errors),
        'invalid_answers': len(found.invalid_answers),
        'examples': [
            *found.server_errors[:_EXAMPLES],
            *found.invalid_answers[:_EXAMPLES],
        ],
    }

# SPDX-License-Identifier: Apache-2.0

"""Requests that schemathesis makes from the OpenAPI document.

It reads the document as any client does, and compares the answers with its
own implementation of JSON Schema; :mod:`vsched_api.tests.conformance` does
so with another one for the requests of all other tests.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import logging
import typing as ty

import flask
import hypothesis
import schemathesis
from schemathesis import checks
from schemathesis.core import failures
from schemathesis.specs.openapi import checks as openapi_checks

#: What each answer is checked for.
CHECKS = (
    checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
    openapi_checks.negative_data_rejection,
)

_PATH = '/v1/openapi.json'
_MODES = (
    schemathesis.GenerationMode.POSITIVE,
    schemathesis.GenerationMode.NEGATIVE,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the requests.

    :param statuses: how many had each status.
    :param server_errors: a text for each request that failed in the service.
    :param invalid_answers: likewise for each answer that the document does
        not have.
    """

    statuses: ty.Counter[int] = dataclasses.field(
        default_factory=collections.Counter
    )
    server_errors: list[str] = dataclasses.field(default_factory=list)
    invalid_answers: list[str] = dataclasses.field(default_factory=list)

    @property
    def requests(self) -> int:
        """How many there were."""
        return self.statuses.total()


def run(
    app: flask.Flask,
    each: int,
    known: Mapping[str, str],
    seed: int = 1,
    expected: Mapping[str, int] | None = None,
    only: Collection[str] | None = None,
) -> Iterator[tuple[str, Outcome]]:
    """Send requests to each operation, and yield its outcome.

    Half of them are valid by the document and half are not. Of those with
    parameters in the path one half names something that exists.

    :param each: how many of each kind, at most.
    :param known: values of path parameters that exist, by name.
    :param seed: the same one makes the same requests.
    :param expected: a status of 500 and above that an operation is known to
        answer here, by operation ID.
    :param only: these operations, by their IDs; None for all.
    """
    # They are of every request.
    for name in ('vsched_api', 'oslo_policy', 'hypothesis', 'schemathesis'):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    schema: ty.Any = schemathesis.openapi.from_wsgi(_PATH, app)
    # It leaves out the operation at the address that it was read from.
    schema.location = None
    for found in schema.get_all_operations():
        operation = found.ok()
        label = operation.definition.raw['operationId']
        if only is not None and label not in only:
            continue
        outcome = Outcome()
        for mode in _MODES:
            for values in _path_values(operation, known):
                _send(
                    operation,
                    mode,
                    values,
                    each,
                    seed,
                    (expected or {}).get(label),
                    outcome,
                )
        yield label, outcome


def _path_values(
    operation: ty.Any, known: Mapping[str, str]
) -> Iterator[dict[str, str] | None]:
    yield None
    names = [one.name for one in operation.path_parameters]
    if names:
        yield {name: known[name] for name in names}


def _send(
    operation: ty.Any,
    mode: schemathesis.GenerationMode,
    values: dict[str, str] | None,
    each: int,
    seed: int,
    expected: int | None,
    outcome: Outcome,
) -> None:
    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=each,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(
        operation.as_strategy(generation_mode=mode, path_parameters=values)
    )
    def each_case(case: ty.Any) -> None:
        answer = case.call()
        outcome.statuses[answer.status_code] += 1
        used = list(CHECKS)
        if answer.status_code == expected:
            used.remove(checks.not_a_server_error)
        try:
            case.validate_response(answer, checks=used)
        except failures.FailureGroup as problem:
            text = '%s\n%s' % (problem, case.as_curl_command())
            if any(
                isinstance(one, failures.ServerError)
                for one in problem.exceptions
            ):
                outcome.server_errors.append(text)
            else:
                outcome.invalid_answers.append(text)

    # An operation without parameters has no invalid requests.
    with contextlib.suppress(hypothesis.errors.Unsatisfiable):
        each_case()

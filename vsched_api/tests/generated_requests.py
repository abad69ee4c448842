# SPDX-License-Identifier: Apache-2.0

"""Requests that schemathesis makes from the OpenAPI document.

It reads the document as any client does, and compares the answers with its
own implementation of JSON Schema; :mod:`vsched_api.tests.conformance` does
so with another one for the requests of all other tests.
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import MutableMapping
import contextlib
import dataclasses
import logging
import types
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

#: How a request that the document does not allow may be refused. The list of
#: schemathesis lacks 431: many values of one parameter make a long path.
_REFUSALS = (
    400, 401, 403, 404, 405, 406, 409, 415, 422, 428, 429, 431, '5xx',
)  # fmt: skip

_PATH = '/v1/openapi.json'
_MODES = (
    schemathesis.GenerationMode.POSITIVE,
    schemathesis.GenerationMode.NEGATIVE,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the requests.

    :param statuses: how many had each status.
    :param successes: likewise of the answers that the document has for a
        success, without those of ``invalid_answers``.
    :param server_errors: a text for each request that failed in the service.
    :param invalid_answers: likewise for each answer that the document does
        not have.
    """

    statuses: ty.Counter[int] = dataclasses.field(
        default_factory=collections.Counter
    )
    successes: ty.Counter[int] = dataclasses.field(
        default_factory=collections.Counter
    )
    server_errors: list[str] = dataclasses.field(default_factory=list)
    invalid_answers: list[str] = dataclasses.field(default_factory=list)

    @property
    def requests(self) -> int:
        """How many there were."""
        return self.statuses.total()


@dataclasses.dataclass(frozen=True, slots=True)
class Accepted:
    """What makes a request that is valid by the document succeed.

    :param path: values of the parameters in the path, by name.
    :param values: values of other parameters, of headers and of fields of
        the body, which replace those that a request has.
    :param needed: fields that the body gets whatever it has.
    :param without: fields that the body loses.
    """

    path: Mapping[str, str] = dataclasses.field(default_factory=dict)
    values: Mapping[str, ty.Any] = dataclasses.field(default_factory=dict)
    needed: Mapping[str, ty.Any] = dataclasses.field(default_factory=dict)
    without: Collection[str] = ()

    def apply(self, case: ty.Any) -> None:
        """Change a request of schemathesis."""
        case.path_parameters.update(self.path)
        for part in (case.query, case.headers, case.body):
            if isinstance(part, MutableMapping):
                part.update(
                    {
                        name: value
                        for name, value in self.values.items()
                        if name in part
                    }
                )
        if isinstance(case.body, MutableMapping):
            case.body.update(self.needed)
            for name in self.without:
                case.body.pop(name, None)


#: Arranges that a request succeeds, by operation ID.
Preparations = Mapping[str, Callable[[], Accepted]]


def run(
    app: flask.Flask,
    each: int,
    known: Mapping[str, str],
    seed: int = 1,
    preparations: Preparations = types.MappingProxyType({}),
    only: Collection[str] | None = None,
) -> Iterator[tuple[str, Outcome]]:
    """Send requests to each operation, and yield its outcome.

    Half of them are valid by the document and half are not. Of those with
    parameters in the path one half names something that exists. Some more
    that are valid are sent to operations with a preparation.

    :param each: how many of each kind, at most.
    :param known: values of path parameters that exist, by name.
    :param seed: the same one makes the same requests.
    :param preparations: each is called before each of its requests.
    :param only: these operations, by their IDs; None for all.
    """
    # They are of every request.
    for name in ('vsched_api', 'oslo_policy', 'hypothesis', 'schemathesis'):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    schema: ty.Any = schemathesis.openapi.from_wsgi(
        _PATH,
        app,
        config=schemathesis.Config.from_dict(
            {
                'checks': {
                    'negative_data_rejection': {
                        'expected-statuses': [str(one) for one in _REFUSALS]
                    }
                }
            }
        ),
    )
    # It leaves out the operation at the address that it was read from.
    schema.location = None
    for found in schema.get_all_operations():
        operation = found.ok()
        label = operation.definition.raw['operationId']
        if only is not None and label not in only:
            continue
        sender = _Sender(operation, each, seed)
        for mode in _MODES:
            for values in _path_values(operation, known):
                sender.send(mode, values)
        if label in preparations:
            sender.send(_MODES[0], None, preparations[label])
        yield label, sender.outcome


def _path_values(
    operation: ty.Any, known: Mapping[str, str]
) -> Iterator[dict[str, str] | None]:
    yield None
    names = [one.name for one in operation.path_parameters]
    if names:
        yield {name: known[name] for name in names}


class _Sender:
    """Sends the requests to one operation.

    :param each: how many of one kind, at most.
    :ivar outcome: of all of them.
    """

    def __init__(self, operation: ty.Any, each: int, seed: int) -> None:
        self._operation = operation
        self._each = each
        self._seed = seed
        self.outcome = Outcome()

    def send(
        self,
        mode: schemathesis.GenerationMode,
        path: dict[str, str] | None,
        prepare: Callable[[], Accepted] | None = None,
    ) -> None:
        """Send those of one kind.

        :param path: values of the parameters in the path; None for some
            that are generated.
        """

        @hypothesis.seed(self._seed)
        @hypothesis.settings(
            max_examples=self._each,
            database=None,
            deadline=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(
            self._operation.as_strategy(
                generation_mode=mode, path_parameters=path
            )
        )
        def each_case(case: ty.Any) -> None:
            if prepare is not None:
                prepare().apply(case)
            self._call(case)

        # An operation without parameters has no invalid requests.
        with contextlib.suppress(hypothesis.errors.Unsatisfiable):
            each_case()

    def _call(self, case: ty.Any) -> None:
        answer, outcome = case.call(), self.outcome
        outcome.statuses[answer.status_code] += 1
        try:
            case.validate_response(answer, checks=list(CHECKS))
        except failures.FailureGroup as problem:
            text = '%s\n%s' % (problem, case.as_curl_command())
            if any(
                isinstance(one, failures.ServerError)
                for one in problem.exceptions
            ):
                outcome.server_errors.append(text)
            else:
                outcome.invalid_answers.append(text)
        else:
            if answer.status_code < 300:
                outcome.successes[answer.status_code] += 1

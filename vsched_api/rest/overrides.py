# SPDX-License-Identifier: Apache-2.0

"""What the nouns have in common that operators override.

Each instance has one such resource of each noun. An override is accepted
once it is stored: 202, and it is pending until its agent has answered.
"""

from collections.abc import Callable
import dataclasses
import re
import typing as ty

import flask

from vsched_api.operations import authors
from vsched_api.operations import overrides
from vsched_api.rest import authorization
from vsched_api.rest import clock
from vsched_api.rest import errors
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import fields

#: The rows' columns are no longer.
_MAX_ID_CHARS = 255
_MAX_REQUEST_ID_CHARS = 64

_TAG = re.compile(r'"([0-9]{1,18})"\Z', re.ASCII)


class Resource(ty.Protocol):
    """A resource that may be overridden."""

    @property
    def instance_uuid(self) -> str:
        """Its instance."""

    @property
    def generation(self) -> int:
        """Of its override; 0 without one."""


T = ty.TypeVar('T', bound=Resource)


@dataclasses.dataclass(frozen=True, slots=True)
class Noun(ty.Generic[T]):
    """The answers of one noun.

    :param singular: the key of a resource in an answer.
    :param plural: the noun in paths.
    :param view: returns a resource as JSON.
    """

    singular: str
    plural: str
    view: Callable[[T], dict[str, ty.Any]]

    def show(
        self, rule: str, instance_uuid: str, operation: Callable[..., T]
    ) -> flask.typing.ResponseReturnValue:
        """Answer with the resource of one instance.

        :param rule: the policy, for the project of the instance.
        :param operation: called with database and instance.
        """
        validation.query(fields.NOTHING)
        uuid = validation.instance_uuid(instance_uuid)
        authorization.enforce_instance(rule, uuid)
        return self._answer(operation(services.current().database, uuid), 200)

    def created(self, one: T) -> flask.typing.ResponseReturnValue:
        """Answer with a resource that is new, and with where it is."""
        links = pagination.self_link(self.plural, one.instance_uuid)
        return self._answer(one, 202, Location=links[0]['href'])

    def changed(self, one: T | None) -> flask.typing.ResponseReturnValue:
        """Answer with a changed resource; 204 when nothing is left of it."""
        return ('', 204) if one is None else self._answer(one, 202)

    def _answer(
        self, one: T, status: int, **headers: str
    ) -> flask.typing.ResponseReturnValue:
        return (
            {self.singular: self.view(one)},
            status,
            {'ETag': '"%d"' % one.generation, **headers},
        )


def creation(
    schema: fields.Schema, conditional: bool = True
) -> tuple[overrides.Change, dict[str, ty.Any]]:
    """Return the change of a request without an instance in its path.

    :param schema: of the body.
    :param conditional: whether the request may name a generation.
    :returns: with the other fields of the body.
    """
    validation.query(fields.NOTHING)
    wanted = validation.body(schema)
    expected = _expected(wanted) if conditional else None
    return _change(wanted.pop('instance_uuid'), expected), wanted


def change(
    instance_uuid: str, schema: fields.Schema
) -> tuple[overrides.Change, dict[str, ty.Any]]:
    """Return the change of one instance that is requested.

    :param schema: of the body.
    :returns: with the other fields of the body.
    """
    validation.query(fields.NOTHING)
    uuid = validation.instance_uuid(instance_uuid)
    wanted = validation.body(schema)
    return _change(uuid, _expected(wanted)), wanted


def removal(instance_uuid: str, schema: fields.Schema) -> overrides.Change:
    """Return the requested removal of one instance's override.

    :param schema: of the query.
    """
    expected = _expected(validation.query(schema))
    return _change(validation.instance_uuid(instance_uuid), expected)


def author_view(one: ty.Any, rule: str) -> dict[str, ty.Any] | None:
    """Return who set an override and when.

    :param one: has ``author``, ``created_at`` and ``updated_at``.
    :param rule: the policy that lets one see it.
    :returns: None without an override, or when the policy does not allow it.
    """
    if one.author is None or not authorization.allows(rule):
        return None
    return {
        **authors.columns(one.author),
        'created_at': clock.iso(one.created_at),
        'updated_at': clock.iso(one.updated_at),
    }


def _change(instance_uuid: str, expected: int | None) -> overrides.Change:
    return overrides.Change(
        instance_uuid, services.current().now(), _author(), expected
    )


def _author() -> authors.Author:
    context = flask.g.context
    return authors.Author(
        _cut(context.user_id, _MAX_ID_CHARS),
        _cut(context.project_id, _MAX_ID_CHARS),
        _cut(context.request_id, _MAX_REQUEST_ID_CHARS),
    )


def _expected(said: dict[str, ty.Any]) -> int | None:
    """Return the generation that the request is based on.

    :param said: its body or query; ``generation`` is taken out of it.
    :returns: None when the request does not say.
    :raises errors.InvalidRequest: when ``If-Match`` is not an ETag of ours,
        or says something else than ``generation``.
    """
    generation: int | None = said.pop('generation', None)
    text = flask.request.headers.get('If-Match')
    if text is None or text.strip() == '*':
        return generation
    found = _TAG.match(text.strip())
    if found is None:
        raise errors.InvalidRequest(
            ['If-Match: accepted is the ETag of one answer, or *']
        )
    tag = int(found[1])
    if generation is not None and generation != tag:
        raise errors.InvalidRequest(['If-Match: it differs from generation'])
    return tag


def _cut(text: str | None, most: int) -> str | None:
    return None if text is None else text[:most]

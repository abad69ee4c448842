# SPDX-License-Identifier: Apache-2.0

"""Who changes something, what they know of it, and who may see that."""

import re
import typing as ty

import flask

from vsched_api.operations import authors
from vsched_api.rest import authorization
from vsched_api.rest import clock
from vsched_api.rest import errors

#: The rows' columns are no longer.
_MAX_ID_CHARS = 255
_MAX_REQUEST_ID_CHARS = 64

_TAG = re.compile(r'"([0-9]{1,18})"\Z', re.ASCII)


def current() -> authors.Author:
    """Whose request this is."""
    context = flask.g.context
    return authors.Author(
        _cut(context.user_id, _MAX_ID_CHARS),
        _cut(context.project_id, _MAX_ID_CHARS),
        _cut(context.request_id, _MAX_REQUEST_ID_CHARS),
    )


def expected(said: dict[str, ty.Any]) -> int | None:
    """The generation that the request is based on.

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


def tag(generation: int) -> dict[str, str]:
    """The header that names a generation."""
    return {'ETag': '"%d"' % generation}


def view(one: ty.Any, rule: str) -> dict[str, ty.Any] | None:
    """Who set something and when.

    :param one: has ``author``, ``created_at`` and ``updated_at``.
    :param rule: the policy that lets one see it.
    :returns: None when nobody did, or when the policy does not allow it.
    """
    if one.author is None or not authorization.allows(rule):
        return None
    return {
        **authors.columns(one.author),
        'created_at': clock.iso(one.created_at),
        'updated_at': clock.iso(one.updated_at),
    }


def _cut(text: str | None, most: int) -> str | None:
    return None if text is None else text[:most]

# SPDX-License-Identifier: Apache-2.0

"""Which request a message on the bus belongs to, for the logs.

A request to the API has an id and a user. Both are sent with the casts to
agents that it causes, and calls of agents have an id of their own. The
receiver makes them its thread's context, so that oslo.log writes them with
each line. They are not signed and no decision depends on them.
"""

from collections.abc import Mapping
import re
import typing as ty

from oslo_context import context

_FIELDS = ('request_id', 'user_id', 'project_id')
_SANE = re.compile(r'[A-Za-z0-9_.:@-]{1,64}', re.ASCII)


def outgoing() -> dict[str, ty.Any]:
    """Describe the request that the calling thread works for.

    :returns: JSON types; a new request id if there is none.
    """
    current = context.get_current()
    if current is None:
        return {'request_id': context.generate_request_id()}
    return {
        name: value
        for name in _FIELDS
        if (value := getattr(current, name, None))
    }


def incoming(received: Mapping[str, ty.Any]) -> None:
    """Make a received description the calling thread's context.

    Values that are no id, or longer than 64 characters, are left out.
    """

    def read(name: str) -> str | None:
        value = received.get(name)
        if isinstance(value, str) and _SANE.fullmatch(value):
            return value
        return None

    context.RequestContext(
        request_id=read('request_id'),
        user_id=read('user_id'),
        project_id=read('project_id'),
        overwrite=True,
    )

# SPDX-License-Identifier: Apache-2.0

"""Hide hosts in answers about instances from those who may not see them."""

from collections.abc import Iterable
from collections.abc import Mapping
import typing as ty

from vsched_api.policies import instances as policies
from vsched_api.rest import authorization
from vsched_api.rest import errors

Json = dict[str, ty.Any]


def shown(view: Json, names: Iterable[str], **others: ty.Any) -> Json:
    """Return an object as the request may see it.

    :param names: properties that are null for a request that may not see
        hosts: they name a host, or may concern other instances.
    :param others: further such properties, each with its value instead.
    """
    if authorization.allows(policies.SHOW_HOST):
        return view
    return {**view, **dict.fromkeys(names), **others}


def check_query(query: Mapping[str, ty.Any]) -> None:
    """Check that a list is not sorted or filtered by a host not shown.

    :raises errors.Forbidden: else.
    """
    if authorization.allows(policies.SHOW_HOST):
        return
    if 'host' in query or query.get('sort_key') == 'host':
        raise errors.Forbidden(
            'host: policy %s does not allow to filter or sort by it'
            % policies.SHOW_HOST
        )

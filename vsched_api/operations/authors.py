# SPDX-License-Identifier: Apache-2.0

"""Authors of operators' changes, and optimistic locking by generations."""

import dataclasses
import typing as ty
import uuid

from vsched_api.db.queries import events
from vsched_api.operations import errors
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import messages


@dataclasses.dataclass(frozen=True, slots=True)
class Author:
    """The author of a request; all None when unknown.

    :param request_id: of the log and of the response's header.
    """

    user_id: str | None = None
    project_id: str | None = None
    request_id: str | None = None


NOBODY = Author()


def of(row: ty.Any) -> Author:
    """Return the author of the last change of a row."""
    return Author(row.user_id, row.project_id, row.request_id)


def columns(author: Author) -> dict[str, str | None]:
    """Return the columns in which a row stores its author."""
    return dataclasses.asdict(author)


def expect(generation: int, expected: int | None, what: str) -> None:
    """Raise unless a request is based on the newest generation.

    Must be called in the transaction that makes the next generation.

    :param generation: the newest one; 0 for none.
    :param expected: the generation in the request; None when it has none.
    :param what: the object, for the message.
    :raises errors.Outdated: when the two differ.
    """
    if expected is not None and expected != generation:
        raise errors.Outdated(
            'generation: %s has generation %d, not %d: somebody else changed '
            'it; read it again' % (what, generation, expected)
        )


def tell(
    session: ty.Any,
    host_id: int,
    instance_uuid: str,
    code: contract_errors.Code,
    detail: str,
    author: Author,
    generation: int,
    now: float,
) -> None:
    """Store an event about an operator's change, inside a transaction.

    :param now: seconds since the epoch.
    """
    events.add(
        session,
        [
            {
                'host_id': host_id,
                'uuid': str(uuid.uuid4()),
                'at': now,
                'code': code.value,
                'severity': messages.Severity.INFO.value,
                'instance_uuid': instance_uuid,
                'detail': detail,
                'figures': {'generation': generation, **columns(author)},
            }
        ],
    )

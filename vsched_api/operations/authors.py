# SPDX-License-Identifier: Apache-2.0

"""Who wants something of an instance, and whether they know its state."""

import dataclasses
import typing as ty
import uuid

from vsched_api.db.queries import events
from vsched_api.operations import errors
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import messages


@dataclasses.dataclass(frozen=True, slots=True)
class Author:
    """Whose request it is; all None where nobody knows.

    :param request_id: in the log and in the answer of the request.
    """

    user_id: str | None = None
    project_id: str | None = None
    request_id: str | None = None


NOBODY = Author()


def of(row: ty.Any) -> Author:
    """Who set a row last."""
    return Author(row.user_id, row.project_id, row.request_id)


def columns(author: Author) -> dict[str, str | None]:
    """What a row keeps of its author."""
    return dataclasses.asdict(author)


def expect(generation: int, expected: int | None, what: str) -> None:
    """Raise unless a request knows the newest change.

    To be called in the transaction that makes the next one.

    :param generation: of the newest change; 0 for none.
    :param expected: which the request knows; None when it does not say.
    :param what: of what, in words.
    :raises errors.Outdated: when somebody else was faster.
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
    """Store an event of what an operator changed, inside a transaction.

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

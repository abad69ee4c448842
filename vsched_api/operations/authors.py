# SPDX-License-Identifier: Apache-2.0

"""Authors of operators' changes."""

import dataclasses
import typing as ty


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

# SPDX-License-Identifier: Apache-2.0

"""Events on their way to the collector."""

import collections
from collections.abc import Sequence
import time
import typing as ty
import uuid as uuids

from oslo_log import log as logging

from vsched_lib.contract import messages

LOG = logging.getLogger(__name__)

Severity = messages.Severity


class Events:
    """Events that wait for the next batch. Safe from any thread."""

    def __init__(self) -> None:
        self._waiting: collections.deque[messages.Event] = collections.deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(
        self,
        code: str,
        severity: Severity,
        detail: str,
        instance_uuid: str | None = None,
        figures: dict[str, ty.Any] | None = None,
    ) -> None:
        """Log and report an event.

        :param code: an :class:`errors.Code`.
        :param detail: one sentence with the figures.
        """
        LOG.log(
            {
                Severity.INFO: logging.INFO,
                Severity.WARNING: logging.WARNING,
            }.get(severity, logging.ERROR),
            '%s: %s',
            code,
            detail,
        )
        self._waiting.append(
            messages.Event(
                str(uuids.uuid4()),
                time.time(),
                str(code),
                severity,
                detail,
                instance_uuid,
                figures or {},
            )
        )

    def take(self) -> list[messages.Event]:
        """Remove and return all events, the oldest first."""
        return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def put_back(self, events: Sequence[messages.Event]) -> None:
        """Have events reported before all others.

        :param events: from :meth:`take`.
        """
        self._waiting.extendleft(reversed(events))

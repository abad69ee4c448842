# SPDX-License-Identifier: Apache-2.0

"""Rows of several hosts that one statement stores."""

import typing as ty

from vsched_api.db.queries import events
from vsched_api.db.queries import host_time
from vsched_api.db.queries import usage
from vsched_api.operations import inspection
from vsched_api.operations import notices


class SharedRows:
    """Rows of one transaction that refer to hosts and to nothing else."""

    def __init__(self) -> None:
        self._usage: dict[tuple[int, int], ty.Any] = {}
        self._host_time: dict[tuple[int, int], ty.Any] = {}
        self._events: list[dict[str, ty.Any]] = []
        self._notices: list[notices.Notice] = []

    def notify(self, notice: notices.Notice) -> None:
        """Store an event of the collector.

        :param notice: its host may be added to the session until
            :meth:`store`.
        """
        self._notices.append(notice)

    def add(self, host_id: int, number: int, batch: inspection.Batch) -> None:
        """Store the samples and events of a batch.

        :param number: of the batch, as stored.
        """
        self._usage[host_id, number] = batch.usage
        self._host_time[host_id, number] = batch.host_time
        self._events += [
            {'host_id': host_id, **event} for event in batch.events
        ]

    def store(self, session: ty.Any) -> None:
        """Store all of it; all hosts have their rows."""
        for notice in self._notices:
            notices.add(session, notice)
        usage.add(session, self._usage)
        host_time.add(session, self._host_time)
        events.add(session, self._events)

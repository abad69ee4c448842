# SPDX-License-Identifier: Apache-2.0

"""Events: refusals, repaired drift, degradations and others."""

import collections
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import datetime
import time
import typing as ty

from vsched_client.v1 import base

#: Agents report late, and their clocks differ: events that are older than
#: the newest known one are asked for again, so many seconds back.
OVERLAP_S = 300
#: How many events are remembered, so that none is returned twice.
_REMEMBERED = 100_000


class Event(ty.TypedDict, total=False):
    """Something that happened."""

    uuid: str
    at: str
    host: str
    instance_uuid: str | None
    server_name: str | None
    project_id: str | None
    flavor_name: str | None
    code: str
    severity: str
    detail: str
    figures: dict[str, ty.Any]


class Events(base.Noun):
    """``/v1/events``."""

    def list(
        self,
        host: str | None = None,
        instance_uuids: Sequence[str] = (),
        severity: str | None = None,
        code: str | None = None,
        start: str | None = None,
        end: str | None = None,
        limit: int | None = None,
        project_id: str | None = None,
        server_name: str | None = None,
        flavor_name: str | None = None,
    ) -> Iterator[Event]:
        """Iterate over events, newest first.

        :param instance_uuids: only about these instances; none for all.
        :param start: not before this time, in ISO 8601.
        :param end: before this time.
        :param limit: the most events to return; None for all.
        :param project_id: only about servers of this project.
        :param server_name: only about servers that Nova knows by it.
        :param flavor_name: only about servers of this flavor.
        """
        return ty.cast(
            Iterator[Event],
            self._api.pages(
                'events',
                'events',
                query={
                    'host': host,
                    'instance_uuid': base.repeated(instance_uuids),
                    'project_id': project_id,
                    'server_name': server_name,
                    'flavor_name': flavor_name,
                    'severity': severity,
                    'code': code,
                    'start': start,
                    'end': end,
                },
                limit=limit,
            ),
        )

    def follow(
        self,
        limit: int,
        interval_s: float,
        timeout_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        **filters: ty.Any,
    ) -> Iterator[Event]:
        """Iterate over the newest events, then over each new one, for ever.

        :param limit: how many of the newest events to begin with.
        :param interval_s: between two requests.
        :param timeout_s: end after this time; None never ends.
        :param filters: as for :meth:`list`.
        """
        give_up = None if timeout_s is None else clock() + timeout_s
        known: collections.OrderedDict[str, None] = collections.OrderedDict()
        newest: datetime.datetime | None = None
        # What the first request left out is old, and not new.
        left_out: datetime.datetime | None = None
        start: str | None = filters.pop('start', None)
        while True:
            late = give_up is not None and clock() >= give_up
            first = newest is None
            found = list(
                self.list(
                    start=start, limit=limit if first else None, **filters
                )
            )
            for one in reversed(found):
                if one['uuid'] in known:
                    continue
                known[one['uuid']] = None
                at = datetime.datetime.fromisoformat(one['at'])
                if left_out is not None and at <= left_out:
                    continue
                newest = at if newest is None else max(newest, at)
                yield one
            left_out = None
            if first and len(found) == limit:
                left_out = datetime.datetime.fromisoformat(found[-1]['at'])
            while len(known) > _REMEMBERED:
                known.popitem(last=False)
            if newest is not None:
                start = (
                    newest - datetime.timedelta(seconds=OVERLAP_S)
                ).isoformat()
            if late:
                return
            left_s = interval_s if give_up is None else give_up - clock()
            sleep(max(0.0, min(interval_s, left_s)))

# SPDX-License-Identifier: Apache-2.0

"""Sum what instances got in the newest part of the time, host by host."""

from collections.abc import Collection
from collections.abc import Sequence
import dataclasses
import typing as ty

from vsched_api.db import packing
from vsched_api.db.queries import instances
from vsched_api.db.queries import usage_totals as queries
from vsched_api.db import session as db

#: The most hosts of one page.
MAX_HOSTS = 100

#: The most samples that are read for one page; each host has an equal part of
#: them.
MAX_SAMPLES = 200_000

#: The longest window and the one of a request without any, in microseconds.
MAX_WINDOW_US = 3_600_000_000
WINDOW_US = 10_000_000


@dataclasses.dataclass(slots=True)
class Total:
    """What one instance got on one host; durations in microseconds.

    :param at: the end of its newest interval, in seconds since the epoch.
    :param promised_us: None when no interval has a reservation.
    :param promised_guest_us: ``guest_us`` of those with one.
    """

    instance_uuid: str
    host: str
    at: float
    samples: int = 0
    interval_us: int = 0
    guest_us: int = 0
    wait_us: int = 0
    promised_us: int | None = None
    promised_guest_us: int = 0
    direct_us: int = 0
    shared_us: int = 0

    def add(self, sample: packing.Sample) -> None:
        """Add an interval."""
        self.at = max(self.at, sample.at)
        self.samples += 1
        self.interval_us += sample.interval_us
        self.guest_us += sample.guest_us
        self.wait_us += sample.wait_us
        self.direct_us += sample.direct_us
        self.shared_us += sample.shared_us
        if sample.promised_us is not None:
            self.promised_us = (self.promised_us or 0) + sample.promised_us
            self.promised_guest_us += sample.guest_us


@dataclasses.dataclass(frozen=True, slots=True)
class OfHost:
    """What the instances of one host got.

    :param number: identifies the host in the order of the list.
    :param newest_at: when its newest interval ended, in seconds since the
        epoch; None without any.
    :param covered_us: the part of the window that the totals are of, when it
        has too many samples; None for all of it.
    """

    number: int
    host: str
    newest_at: float | None
    covered_us: int | None
    totals: Sequence[Total]


def page(
    database: db.Database,
    limit: int,
    marker: int | None,
    since: float,
    window_us: int,
    host: str | None = None,
    instance_uuids: Collection[str] = (),
    **server: str | None,
) -> Sequence[OfHost]:
    """Return what instances got in the newest part of the time.

    The window of each host ends with its own newest sample, of whichever
    instance: hosts report at different times, and their clocks differ.

    :param limit: the most hosts.
    :param marker: number of the last host of the page before.
    :param since: only hosts that have reported since then.
    :param window_us: its length, at most :data:`MAX_WINDOW_US`.
    :param host: only this one, whenever it reported.
    :param instance_uuids: only these; none for all.
    :param server: as for :func:`vsched_api.db.queries.instances.uuids`.
    """
    selection: dict[str, ty.Any] = {'instance_uuids': instance_uuids, **server}
    window_s = window_us / 1_000_000

    def work(session: ty.Any) -> Sequence[OfHost]:
        only = instances.selected(session, **selection)
        if only is not None and not only:
            return []
        hosts = queries.hosts(session, limit, marker, since, host, **selection)
        rows = queries.seconds(
            session,
            {
                # A sample ends up to a second before its row does.
                one.id: one.newest - 1 - window_s
                for one in hosts
                if one.newest is not None
            },
        )
        most = MAX_SAMPLES // max(len(hosts), 1)
        read = {number: _first(each, most) for number, each in rows.items()}
        texts = queries.samples(
            session, [row.id for each in read.values() for row in each]
        )
        return [
            _of_host(
                one,
                rows.get(one.id, []),
                read.get(one.id, []),
                texts,
                only,
                window_s,
            )
            for one in hosts
        ]

    return database.read(work)


def _first(
    rows: Sequence[queries.Second], most: int
) -> Sequence[queries.Second]:
    """Return the first rows, with so many samples at most."""
    count = 0
    for place, row in enumerate(rows):
        count += row.size
        if count > most:
            return rows[:place]
    return rows


def _of_host(
    host: queries.Host,
    rows: Sequence[queries.Second],
    read: Sequence[queries.Second],
    texts: dict[int, str],
    only: frozenset[str] | None,
    window_s: float,
) -> OfHost:
    samples = [
        sample
        for row in read
        # A row may have been purged meanwhile, where reads see changes.
        for sample in packing.unpack(texts.get(row.id, '[]'))
    ]
    end = max((one.at for one in samples), default=host.newest)
    if end is None:
        return OfHost(host.id, host.name, None, None, [])
    found: dict[str, Total] = {}
    for sample in samples:
        uuid = sample.instance_uuid
        if sample.at <= end - window_s or (
            only is not None and uuid not in only
        ):
            continue
        if uuid not in found:
            found[uuid] = Total(uuid, host.name, sample.at)
        found[uuid].add(sample)
    covered_us = None
    if len(read) < len(rows):
        covered_us = max(0, round((end - rows[len(read)].at) * 1_000_000))
    return OfHost(host.id, host.name, end, covered_us, [*found.values()])

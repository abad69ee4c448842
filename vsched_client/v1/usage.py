# SPDX-License-Identifier: Apache-2.0

"""CPU time that instances got, and what hosts did."""

from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses
import datetime
import typing as ty

from vsched_client.v1 import base

INSTANCES, HOSTS = 'instances', 'hosts'
RAW, MINUTE, HOUR = 'raw', 'minute', 'hour'

#: One sample or sum, as in the API reference.
Sample = dict[str, ty.Any]


@dataclasses.dataclass(slots=True)
class Total:
    """What one instance got over some intervals; durations in microseconds.

    :param at: the end of the newest interval.
    :param reserved_us: of the intervals with a reservation.
    :param reserved_guest_us: ``guest_us`` of these.
    """

    instance_uuid: str
    host: str
    at: str
    samples: int = 0
    interval_us: int = 0
    guest_us: int = 0
    wait_us: int = 0
    host_us: int = 0
    reserved_us: int = 0
    reserved_guest_us: int = 0

    def add(self, sample: Sample) -> None:
        """Add an interval."""
        self.samples += 1
        self.interval_us += sample['interval_us']
        self.guest_us += sample['guest_us']
        self.wait_us += sample['wait_us']
        self.host_us += sample['direct_us'] + sample['shared_us']
        if sample['promised_us'] is not None:
            self.reserved_us += sample['promised_us']
            self.reserved_guest_us += sample['guest_us']

    def mcpu(self, duration_us: int) -> int | None:
        """Return a duration as a part of the intervals, in milli-CPU."""
        if not self.interval_us:
            return None
        return round(duration_us * 1000 / self.interval_us)

    @property
    def error_ppm(self) -> int | None:
        """Return (got - reserved) / reserved; None without a reservation."""
        if not self.reserved_us:
            return None
        return round(
            (self.reserved_guest_us - self.reserved_us)
            * 1_000_000
            / self.reserved_us
        )


class Usage(base.Noun):
    """``/v1/usage``."""

    def list(
        self,
        of: str = INSTANCES,
        resolution: str = RAW,
        instance_uuid: str | None = None,
        host: str | None = None,
        start: str | None = None,
        end: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Sample]:
        """Iterate over samples or sums.

        :param start: only what ended after this time, in ISO 8601.
        :param end: only what ended at this time or before.
        :param limit: the most to return; None for all.
        """
        return self._api.pages(
            'usage',
            'usage',
            query={
                'of': of,
                'resolution': resolution,
                'instance_uuid': instance_uuid,
                'host': host,
                'start': start,
                'end': end,
                'sort_dir': 'desc' if newest_first else 'asc',
            },
            limit=limit,
        )

    def totals(
        self, window_s: float, host: str | None = None, limit: int = 20_000
    ) -> Iterable[Total]:
        """Return what instances got in the newest part of the time.

        :param window_s: its length, up to the end of the newest sample.
        :param limit: the most samples to read.
        """
        newest = next(self.list(host=host, newest_first=True, limit=1), None)
        if newest is None:
            return ()
        start = datetime.datetime.fromisoformat(
            newest['at']
        ) - datetime.timedelta(seconds=window_s)
        found: dict[str, Total] = {}
        for sample in self.list(
            host=host, start=start.isoformat(), newest_first=True, limit=limit
        ):
            uuid = sample['instance_uuid']
            if uuid not in found:
                found[uuid] = Total(uuid, sample['host'], sample['at'])
            found[uuid].add(sample)
        return found.values()

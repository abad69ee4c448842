# SPDX-License-Identifier: Apache-2.0

"""Convert a report to rows.

The fields of a message limit its values (:mod:`vsched_lib.contract.bounds`);
they are checked when it is parsed. This module converts times of the host's
clock to the collector's. The host's clock is data only; it determines no
order.
"""

import dataclasses
import operator
import typing as ty

from vsched_api.db import packing
from vsched_api.db.queries import host_time
from vsched_api.operations import notices
from vsched_lib.contract import balloons
from vsched_lib.contract import messages
from vsched_lib.contract import profiles

#: Clock differences up to this one are not corrected, in seconds.
TOLERANCE_S = 5.0

#: The latest time in the future, such as the end of a pause, from now, in
#: seconds.
_HORIZON_S = 366 * 86_400.0

Row = dict[str, ty.Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    """A report as rows.

    All times are corrected by the clock difference if the host's clock is
    known to be ahead, and none is in the future.

    :param skew_s: by how much the host's clock is ahead of the collector's;
        below 0 when it is behind, None when unknown.
    :param info: None when the report has none.
    :param instances: rows by UUID, None when the report has no list.
    :param reservations: rows by UUID.
    :param profiles: rows of error profiles, with rows of their ``points``.
    :param overhead_profiles: rows.
    :param balloons: rows by the instance's UUID.
    :param all_balloons: whether ``balloons`` is complete.
    :param balloon_changes: rows by UUID.
    :param epoch: the run of the agent that numbered the batch.
    :param after: the stored batch after which the epoch begins.
    """

    host: str
    number: int
    at: float
    skew_s: float | None
    info: Row | None
    instances: dict[str, Row] | None
    reservations: dict[str, Row]
    usage: list[packing.Sample]
    host_time: list[host_time.New]
    events: list[Row]
    jobs: list[Row]
    profiles: list[Row]
    overhead_profiles: list[Row]
    balloons: dict[str, Row]
    all_balloons: bool
    balloon_changes: dict[str, Row]
    epoch: str | None
    after: int | None

    @property
    def plain(self) -> bool:
        """Return whether the batch carries samples and nothing else."""
        return (
            self.info is None
            and self.instances is None
            and not self.reservations
            and not self.events
            and not self.jobs
            and not self.profiles
            and not self.overhead_profiles
            and not self.balloons
            and not self.all_balloons
            and not self.balloon_changes
        )


class _Clock:
    """Converts times of a host's clock to the collector's.

    :param ahead_s: by how much the host's clock is ahead.
    """

    def __init__(self, ahead_s: float, now: float) -> None:
        self._ahead_s = ahead_s if ahead_s > TOLERANCE_S else 0.0
        self._now = now
        self.latest = now + TOLERANCE_S

    @property
    def right(self) -> bool:
        """Return whether the host's clock needs no correction."""
        return not self._ahead_s

    def past(self, at: float) -> float:
        """Convert a time in the past; the result is never in the future."""
        at = max(0.0, at - self._ahead_s)
        return at if at <= self.latest else self._now

    def maybe(self, at: float | None) -> float | None:
        """Convert a time in the past, or None."""
        return None if at is None else self.past(at)

    def future(self, at: float | None) -> float | None:
        """Convert a time that may be up to a year in the future."""
        if at is None:
            return None
        return min(max(0.0, at - self._ahead_s), self._now + _HORIZON_S)


def rows(report: messages.Report, now: float) -> Batch:
    """Convert a report to rows.

    :param now: the collector's clock, in seconds since the epoch.
    """
    skew_s = None
    if report.sent_at is not None:
        skew_s = report.sent_at - now
    elif report.at > now:
        # The delay of an older batch is unknown.
        skew_s = report.at - now
    clock = _Clock(skew_s or 0.0, now)
    return Batch(
        host=report.host,
        number=report.batch,
        at=clock.past(report.at),
        skew_s=skew_s,
        info=None
        if report.host_info is None
        else (report.host_info.to_dict()),
        instances=None
        if report.instances is None
        else {row['uuid']: row for row in map(_instance, report.instances)},
        reservations={
            one.instance_uuid: _reservation(one, clock)
            for one in report.reservations
        },
        usage=_samples(report.usage, clock),
        host_time=[_host_time(one, clock) for one in report.host_usage],
        events=[_event(event, clock) for event in report.events],
        jobs=[_job(job) for job in report.jobs],
        profiles=[_profile(one, clock) for one in report.error_profiles],
        overhead_profiles=[
            _profile(one, clock) for one in report.overhead_profiles
        ],
        balloons={
            one.instance_uuid: _balloon(one, clock) for one in report.balloons
        },
        all_balloons=report.all_balloons,
        balloon_changes={
            one.uuid: _balloon_change(one, clock)
            for one in report.balloon_changes
        },
        epoch=report.epoch,
        after=report.after,
    )


def _instance(instance: messages.InstanceInfo) -> Row:
    row = instance.to_dict()
    row['uuid'] = row.pop('instance_uuid')
    # MariaDB ignores trailing blanks in comparisons.
    row['name'] = row['name'].strip()
    for name in ('server_name', 'flavor_name'):
        row[name] = (row[name] or '').strip() or None
    return row


def _reservation(report: messages.ReservationReport, clock: _Clock) -> Row:
    row = report.to_dict()
    del row['instance_uuid']
    row['since'] = clock.past(report.since)
    row['attested_at'] = clock.maybe(report.attested_at)
    return row


_sample_values = operator.attrgetter(*packing.Sample._fields)
_sample_time = operator.attrgetter('at')
_host_values = operator.attrgetter(*host_time.New._fields[1:])


def _samples(
    samples: tuple[messages.UsageSample, ...], clock: _Clock
) -> list[packing.Sample]:
    found = [packing.Sample(*_sample_values(sample)) for sample in samples]
    # A fast path: ten thousand samples a second are usual.
    if clock.right and max(map(_sample_time, found), default=0) <= (
        clock.latest
    ):
        return found
    return [one._replace(at=clock.past(one.at)) for one in found]


def _host_time(usage: messages.HostUsage, clock: _Clock) -> host_time.New:
    return host_time.New(clock.past(usage.at), *_host_values(usage))


def _event(event: messages.Event, clock: _Clock) -> Row:
    row = notices.of_host(event.to_dict())
    row['at'] = clock.past(event.at)
    if row['at'] != event.at:
        # Nothing else keeps the host's own value.
        row['figures'] = {**row['figures'], 'host_at': event.at}
    return row


def _job(job: messages.JobReport) -> Row:
    row = job.to_dict()
    # The collector stores the time of receipt instead.
    del row['at']
    return row


def _balloon(report: balloons.BalloonReport, clock: _Clock) -> Row:
    row = report.to_dict()
    del row['instance_uuid']
    row['since'] = clock.past(report.since)
    row['not_before'] = clock.future(report.not_before)
    return row


def _balloon_change(change: balloons.BalloonChange, clock: _Clock) -> Row:
    row = change.to_dict()
    del row['uuid']
    row['started_at'] = clock.past(change.started_at)
    row['ended_at'] = clock.maybe(change.ended_at)
    return row


def _profile(profile: profiles.Profile, clock: _Clock) -> Row:
    row = profile.to_dict()
    for name in ('started_at', 'finished_at'):
        row[name] = clock.past(getattr(profile, name))
    return row

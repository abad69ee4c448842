# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Make of a report what every database can hold.

A report that is well formed JSON of the right types may still carry what
one of the databases has no way to store. Such a batch would fail for ever,
so it is found out here and not by the database.
"""

import dataclasses
import operator

from vsched_api.db import packing
from vsched_api.db.queries import host_time
from vsched_api.operations import storable
from vsched_lib.contract import balloons
from vsched_lib.contract import messages
from vsched_lib.contract import policy as policies
from vsched_lib.contract import profiles
from vsched_lib.contract import wire
from vsched_lib.model import error

_MAX_NOTES = 1000
_MAX_VALUES = 1000

Row = storable.Object


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    """A report as rows.

    :param info: None when the report has none.
    :param instances: rows by UUID, None when the report has no list.
    :param reservations: rows by UUID.
    :param profiles: rows of error profiles, with rows of their ``points``.
    :param overhead_profiles: rows.
    :param balloons: rows by the instance's UUID.
    :param all_balloons: these are all that there are.
    :param balloon_changes: rows by UUID.
    """

    host: str
    number: int
    at: float
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

    @property
    def plain(self) -> bool:
        """Whether it carries samples and nothing else."""
        return (self.info is None and self.instances is None and
                not self.reservations and not self.events and
                not self.jobs and not self.profiles and
                not self.overhead_profiles and
                not self.balloons and not self.all_balloons and
                not self.balloon_changes)


def rows(report: messages.Report) -> Batch:
    """Turn a report into rows.

    Names and sentences that are too long are cut, and characters that no
    text column takes are replaced: neither is worth losing a batch for.

    :raises wire.MalformedMessage: naming what can not be stored.
    """
    return Batch(
        host=storable.host_name(report.host),
        number=storable.integer('Report.batch', report.batch),
        at=storable.moment('Report.at', report.at),
        info=None if report.host_info is None else _info(report.host_info),
        instances=None if report.instances is None else {
            row['uuid']: row for row in map(_instance, report.instances)},
        reservations=dict(map(_reservation, report.reservations)),
        usage=[_sample(sample) for sample in report.usage],
        host_time=[_host_time(one) for one in report.host_usage],
        events=[_event(event) for event in report.events],
        jobs=[_job(job) for job in report.jobs],
        profiles=[_profile(profile) for profile in report.error_profiles],
        overhead_profiles=[_overhead(profile)
                           for profile in report.overhead_profiles],
        balloons=dict(map(_balloon, report.balloons)),
        all_balloons=report.all_balloons,
        balloon_changes=dict(map(_balloon_change, report.balloon_changes)))


def _info(info: messages.HostInfo) -> Row:
    for name in ('cpus', 'tick_us', 'capacity_mcpu', 'admitted_mcpu',
                 'reserve_mcpu', 'budget_check_us'):
        storable.integer('HostInfo.' + name, getattr(info, name))
    if info.placement is not None:
        for name in ('offered_mcpu', 'claimed_mcpu'):
            value = getattr(info.placement, name)
            if value is not None:
                storable.integer('PlacementInfo.' + name, value)
    if info.policy is not None:
        _policy(info.policy)
    return storable.json_object('HostInfo', info.to_dict())


def _policy(policy: policies.HostPolicy) -> None:
    if not 0 < policy.confidence < 1:
        raise wire.MalformedMessage(
            'HostPolicy.confidence: %r is not between 0 and 1'
            % policy.confidence)
    for name in ('max_margin_ppm', 'max_overhead_ppm'):
        storable.count('HostPolicy.' + name, getattr(policy, name))


def _instance(instance: messages.InstanceInfo) -> Row:
    return {
        'uuid': storable.uuid(
            'InstanceInfo.instance_uuid', instance.instance_uuid),
        'name': storable.name(instance.name),
        'vcpus': storable.vcpus('InstanceInfo.vcpus', instance.vcpus),
        'workload_class': storable.maybe(
            storable.word, 'InstanceInfo.workload_class',
            instance.workload_class),
    }


def _reservation(
        report: messages.ReservationReport) -> tuple[str, Row]:
    where = 'ReservationReport.'
    row: Row = {
        'source': report.source.value,
        'state': report.state.value,
        'vcpus': storable.vcpus(where + 'vcpus', report.vcpus),
        'since': storable.moment(where + 'since', report.since),
        'attested_at': storable.maybe(
            storable.moment, where + 'attested_at', report.attested_at),
        'detail': None if report.detail is None else (
            storable.sentence(report.detail)),
        'figures': storable.json_object(where + 'figures', report.figures),
        'io': storable.maybe(_io, where + 'io', report.io),
    }
    for name in ('generation', 'runtime_us', 'period_us',
                 'enforced_runtime_us', 'enforced_period_us'):
        row[name] = storable.maybe(
            storable.integer, where + name, getattr(report, name))
    for name in ('mode', 'backend', 'enforced_backend', 'code'):
        row[name] = storable.maybe(
            storable.word, where + name, getattr(report, name))
    return storable.uuid(where + 'instance_uuid', report.instance_uuid), row


def _io(where: str, io: messages.IoReport) -> Row:
    for name in ('threads', 'runtime_us', 'period_us', 'guest_runtime_us',
                 'charged_mcpu', 'debt_us'):
        storable.maybe(storable.integer, '%s.%s' % (where, name),
                       getattr(io, name))
    for name in ('charging', 'code'):
        storable.maybe(storable.word, '%s.%s' % (where, name),
                       getattr(io, name))
    return storable.json_object(where, {**io.to_dict(), 'detail': None if (
        io.detail is None) else storable.sentence(io.detail)})


_sample_values = operator.attrgetter(*packing.Sample._fields)


def _sample(sample: messages.UsageSample) -> packing.Sample:
    # Ten thousand pass here in a second: which value is wrong is asked only
    # when one is.
    found = packing.Sample(*_sample_values(sample))
    amounts = [value for value in found[2:] if value is not None]
    if min(amounts) < 0 or max(amounts) > storable.MAX_INTEGER:
        for name, value in zip(found._fields[2:], found[2:], strict=True):
            storable.maybe(storable.count, 'UsageSample.' + name, value)
    storable.moment('UsageSample.at', found.at)
    instance_uuid = storable.uuid(
        'UsageSample.instance_uuid', found.instance_uuid)
    if instance_uuid is found.instance_uuid:
        return found
    return found._replace(instance_uuid=instance_uuid)


def _host_time(usage: messages.HostUsage) -> host_time.New:
    where = 'HostUsage.'
    return host_time.New(storable.moment(where + 'at', usage.at), *(
        storable.count(where + name, getattr(usage, name))
        for name in host_time.New._fields[1:]))


def _event(event: messages.Event) -> Row:
    return {
        'uuid': storable.uuid('Event.uuid', event.uuid),
        'at': storable.moment('Event.at', event.at),
        'code': storable.word('Event.code', event.code),
        'severity': event.severity.value,
        'detail': storable.sentence(event.detail),
        'instance_uuid': storable.maybe(
            storable.uuid, 'Event.instance_uuid', event.instance_uuid),
        'figures': storable.json_object('Event.figures', event.figures),
    }


def _job(job: messages.JobReport) -> Row:
    return {
        'uuid': storable.uuid('JobReport.uuid', job.uuid),
        'attempt': storable.count('JobReport.attempt', job.attempt),
        'state': job.state.value,
        'progress_ppm': min(max(job.progress_ppm, 0), error.PPM),
        'detail': storable.sentence(job.detail),
    }


def _balloon(report: balloons.BalloonReport) -> tuple[str, Row]:
    where = 'BalloonReport.'
    if len(report.cpus) > _MAX_VALUES:
        raise wire.MalformedMessage('%scpus: more than %d' % (
            where, _MAX_VALUES))
    row: Row = {
        'state': report.state.value,
        'order_state': report.order_state and report.order_state.value,
        'cpus': [storable.count(where + 'cpus', cpu) for cpu in report.cpus],
        'since': storable.moment(where + 'since', report.since),
        'not_before': storable.maybe(
            storable.moment, where + 'not_before', report.not_before),
        'code': storable.maybe(storable.word, where + 'code', report.code),
    }
    for name in ('vcpus', 'online_vcpus', 'min_vcpus', 'floor_vcpus',
                 'failures', 'generation'):
        row[name] = storable.count(where + name, getattr(report, name))
    for name in ('auto', 'dry_run', 'pinned', 'guest_answers'):
        row[name] = getattr(report, name)
    for name in ('cause', 'detail'):
        value = getattr(report, name)
        row[name] = None if value is None else storable.sentence(value)
    return storable.uuid(where + 'instance_uuid', report.instance_uuid), row


def _balloon_change(change: balloons.BalloonChange) -> tuple[str, Row]:
    where = 'BalloonChange.'
    row: Row = {
        'instance_uuid': storable.uuid(
            where + 'instance_uuid', change.instance_uuid),
        'started_at': storable.moment(where + 'started_at', change.started_at),
        'ended_at': storable.maybe(
            storable.moment, where + 'ended_at', change.ended_at),
        'manual': change.manual,
        'cause': storable.sentence(change.cause),
        'took_ms': storable.maybe(
            storable.count, where + 'took_ms', change.took_ms),
        'outcome': change.outcome and change.outcome.value,
        'detail': None if change.detail is None else storable.sentence(
            change.detail),
    }
    for name in ('vcpus', 'before_vcpus', 'online_vcpus'):
        row[name] = storable.count(where + name, getattr(change, name))
    return storable.uuid(where + 'uuid', change.uuid), row


def _profile(profile: profiles.ErrorProfile) -> Row:
    row = _measured('ErrorProfile.', profile)
    row['points'] = [_point(point) for point in profile.points]
    return row


def _measured(where: str, profile: profiles.Profile) -> Row:
    """What every kind of profile has."""
    row: Row = {
        'uuid': storable.uuid(where + 'uuid', profile.uuid),
        'source': profile.source.value,
        'kernel': storable.name(profile.kernel),
        'load': storable.number(where + 'load', profile.load),
        'quick': profile.quick,
        'complete': profile.complete,
        'features': storable.json_object(where + 'features', profile.features),
        'notes': [storable.sentence(note)
                  for note in profile.notes[:_MAX_NOTES]],
    }
    for name in ('version', 'tick_us', 'cpus'):
        row[name] = storable.count(where + name, getattr(profile, name))
    for name in ('started_at', 'finished_at'):
        row[name] = storable.moment(where + name, getattr(profile, name))
    return row


def _point(point: profiles.ErrorPoint) -> Row:
    where = 'ErrorPoint.'
    row: Row = {
        'backend': storable.word(where + 'backend', point.backend),
        'probe': point.probe.value,
    }
    for name in ('period_us', 'share_ppm', 'contenders', 'window_us', 'n'):
        row[name] = storable.count(where + name, getattr(point, name))
    for name in ('mean_ppm', 'min_ppm', 'max_ppm', 'abs_p50_ppm',
                 'abs_p95_ppm', 'abs_p99_ppm', 'long_mean_ppm'):
        row[name] = storable.integer(where + name, getattr(point, name))
    for name in ('quantiles_ppm', 'counts', 'lowest_ppm', 'largest_ppm'):
        values = getattr(point, name)
        # How many there are is the model's of the agent's release.
        if not 0 < len(values) <= _MAX_VALUES:
            raise wire.MalformedMessage(
                '%s: %d values are not 1 to %d' % (
                    where + name, len(values), _MAX_VALUES))
        row[name] = [storable.integer(where + name, value) for value in values]
    return row


def _overhead(profile: profiles.OverheadProfile) -> Row:
    where = 'OverheadProfile.'
    for name in ('prices', 'points'):
        if len(getattr(profile, name)) > _MAX_VALUES:
            raise wire.MalformedMessage('%s: more than %d' % (
                where + name, _MAX_VALUES))
    return {
        **_measured(where, profile),
        'good': profile.good,
        'n': storable.count(where + 'n', profile.n),
        'r2': storable.number(where + 'r2', profile.r2),
        'residual_ns': storable.number(
            where + 'residual_ns', profile.residual_ns),
        'prices': [_price(price) for price in profile.prices],
        'points': [_overhead_point(point) for point in profile.points],
    }


def _price(price: profiles.OverheadPrice) -> Row:
    where = 'OverheadPrice.'
    return {'term': storable.word(where + 'term', price.term),
            'cost_ns': storable.number(where + 'cost_ns', price.cost_ns),
            'error_ns': storable.maybe(
                storable.number, where + 'error_ns', price.error_ns)}


def _overhead_point(point: profiles.OverheadPoint) -> Row:
    where = 'OverheadPoint.'
    return {name: storable.word(where + name, value) if name == 'experiment'
            else storable.count(where + name, value)
            for name, value in point.to_dict().items()}

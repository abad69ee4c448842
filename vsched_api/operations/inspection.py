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

from collections.abc import Mapping
import dataclasses
import json
import math
import operator
import re
import typing as ty
import uuid

from vsched_api.db import packing
from vsched_api.db.queries import host_time
from vsched_lib.contract import balloons
from vsched_lib.contract import messages
from vsched_lib.contract import policy as policies
from vsched_lib.contract import profiles
from vsched_lib.contract import wire
from vsched_lib.model import error

#: 9999-12-31T23:00:00Z: the last full hour that has an ISO 8601 form.
_LATEST_S = 253_402_297_200.0
_MAX_INTEGER = 2**63 - 1
_MAX_VCPUS = 2**31 - 1
_MAX_NAME_CHARS = 255
_MAX_WORD_CHARS = 64
_MAX_DETAIL_CHARS = 4000
_MAX_NOTES = 1000
_MAX_VALUES = 1000
# As str(uuid.UUID()) writes it.
_UUID = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', re.ASCII)

Row = dict[str, ty.Any]


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
        host=host_name(report.host),
        number=_integer('Report.batch', report.batch),
        at=_time('Report.at', report.at),
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


def host_name(name: str) -> str:
    """A host's name as it is, for it must match what the agent is called.

    :raises wire.MalformedMessage: when no column takes it.
    """
    if not 0 < len(name) <= _MAX_NAME_CHARS or name != _clean(name):
        raise wire.MalformedMessage(
            'Report.host: %s is not 1 to %d characters of text' % (
                ascii(name[:_MAX_WORD_CHARS]), _MAX_NAME_CHARS))
    return name


def sentence(value: str) -> str:
    """A sentence that fits its column."""
    return _clean(value)[:_MAX_DETAIL_CHARS]


def _clean(value: str) -> str:
    # PostgreSQL takes no NUL, and no database half a surrogate pair.
    return value.encode('utf-8', 'replace').decode('utf-8').replace(
        '\0', '\N{REPLACEMENT CHARACTER}')


def _word(where: str, value: str) -> str:
    if len(value) > _MAX_WORD_CHARS:
        raise wire.MalformedMessage(
            '%s: %d characters are more than %d' % (
                where, len(value), _MAX_WORD_CHARS))
    return _clean(value)


def _maybe(check: ty.Callable[[str, ty.Any], ty.Any], where: str,
           value: ty.Any) -> ty.Any:
    return None if value is None else check(where, value)


def _integer(where: str, value: int, highest: int = _MAX_INTEGER) -> int:
    if not -highest <= value <= highest:
        raise wire.MalformedMessage(
            '%s: a number this large can not be stored' % where)
    return value


def _count(where: str, value: int) -> int:
    if value < 0:
        raise wire.MalformedMessage('%s: %d is below 0' % (where, value))
    return _integer(where, value)


def _vcpus(where: str, value: int) -> int:
    if value < 0:
        raise wire.MalformedMessage('%s: %d is below 0' % (where, value))
    return _integer(where, value, _MAX_VCPUS)


def _time(where: str, value: float) -> float:
    if not (math.isfinite(value) and 0 <= value <= _LATEST_S):
        raise wire.MalformedMessage(
            '%s: %r is not a time in seconds since 1970' % (where, value))
    return value


def _uuid(where: str, value: str) -> str:
    if _UUID.fullmatch(value):
        return value
    try:
        return str(uuid.UUID(value))
    except ValueError:
        raise wire.MalformedMessage('%s: %s is not a UUID' % (
            where, ascii(value[:_MAX_WORD_CHARS]))) from None


def _number(where: str, value: float) -> float:
    if not math.isfinite(value):
        raise wire.MalformedMessage(
            '%s: %r is not a finite number' % (where, value))
    return value


def _object(where: str, value: Mapping[str, ty.Any]) -> Row:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise wire.MalformedMessage('%s: %s' % (
            where, problem)) from None
    return ty.cast(Row, _clean_object(value))


def _clean_object(value: ty.Any) -> ty.Any:
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, Mapping):
        return {_clean(str(key)): _clean_object(item)
                for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean_object(item) for item in value]
    return value


def _info(info: messages.HostInfo) -> Row:
    for name in ('cpus', 'tick_us', 'capacity_mcpu', 'admitted_mcpu',
                 'reserve_mcpu'):
        _integer('HostInfo.' + name, getattr(info, name))
    if info.placement is not None:
        for name in ('offered_mcpu', 'claimed_mcpu'):
            value = getattr(info.placement, name)
            if value is not None:
                _integer('PlacementInfo.' + name, value)
    if info.policy is not None:
        _policy(info.policy)
    return _object('HostInfo', info.to_dict())


def _policy(policy: policies.HostPolicy) -> None:
    if not 0 < policy.confidence < 1:
        raise wire.MalformedMessage(
            'HostPolicy.confidence: %r is not between 0 and 1'
            % policy.confidence)
    for name in ('max_margin_ppm', 'max_overhead_ppm'):
        _count('HostPolicy.' + name, getattr(policy, name))


def _instance(instance: messages.InstanceInfo) -> Row:
    return {
        'uuid': _uuid('InstanceInfo.instance_uuid', instance.instance_uuid),
        'name': _clean(instance.name)[:_MAX_NAME_CHARS],
        'vcpus': _vcpus('InstanceInfo.vcpus', instance.vcpus),
        'workload_class': _maybe(
            _word, 'InstanceInfo.workload_class', instance.workload_class),
    }


def _reservation(
        report: messages.ReservationReport) -> tuple[str, Row]:
    where = 'ReservationReport.'
    row: Row = {
        'source': report.source.value,
        'state': report.state.value,
        'vcpus': _vcpus(where + 'vcpus', report.vcpus),
        'since': _time(where + 'since', report.since),
        'attested_at': _maybe(_time, where + 'attested_at',
                              report.attested_at),
        'detail': None if report.detail is None else sentence(report.detail),
        'figures': _object(where + 'figures', report.figures),
        'io': _maybe(_io, where + 'io', report.io),
    }
    for name in ('generation', 'runtime_us', 'period_us',
                 'enforced_runtime_us', 'enforced_period_us'):
        row[name] = _maybe(_integer, where + name, getattr(report, name))
    for name in ('mode', 'backend', 'enforced_backend', 'code'):
        row[name] = _maybe(_word, where + name, getattr(report, name))
    return _uuid(where + 'instance_uuid', report.instance_uuid), row


def _io(where: str, io: messages.IoReport) -> Row:
    for name in ('threads', 'runtime_us', 'period_us', 'guest_runtime_us',
                 'charged_mcpu', 'debt_us'):
        _maybe(_integer, '%s.%s' % (where, name), getattr(io, name))
    for name in ('charging', 'code'):
        _maybe(_word, '%s.%s' % (where, name), getattr(io, name))
    return _object(where, {**io.to_dict(), 'detail': None if (
        io.detail is None) else sentence(io.detail)})


_sample_values = operator.attrgetter(*packing.Sample._fields)


def _sample(sample: messages.UsageSample) -> packing.Sample:
    # Ten thousand pass here in a second: which value is wrong is asked only
    # when one is.
    found = packing.Sample(*_sample_values(sample))
    amounts = [value for value in found[2:] if value is not None]
    if min(amounts) < 0 or max(amounts) > _MAX_INTEGER:
        for name, value in zip(found._fields[2:], found[2:], strict=True):
            _maybe(_count, 'UsageSample.' + name, value)
    _time('UsageSample.at', found.at)
    instance_uuid = _uuid('UsageSample.instance_uuid', found.instance_uuid)
    if instance_uuid is found.instance_uuid:
        return found
    return found._replace(instance_uuid=instance_uuid)


def _host_time(usage: messages.HostUsage) -> host_time.New:
    where = 'HostUsage.'
    return host_time.New(_time(where + 'at', usage.at), *(
        _count(where + name, getattr(usage, name))
        for name in host_time.New._fields[1:]))


def _event(event: messages.Event) -> Row:
    return {
        'uuid': _uuid('Event.uuid', event.uuid),
        'at': _time('Event.at', event.at),
        'code': _word('Event.code', event.code),
        'severity': event.severity.value,
        'detail': sentence(event.detail),
        'instance_uuid': _maybe(
            _uuid, 'Event.instance_uuid', event.instance_uuid),
        'figures': _object('Event.figures', event.figures),
    }


def _job(job: messages.JobReport) -> Row:
    return {
        'uuid': _uuid('JobReport.uuid', job.uuid),
        'attempt': _count('JobReport.attempt', job.attempt),
        'state': job.state.value,
        'progress_ppm': min(max(job.progress_ppm, 0), error.PPM),
        'detail': sentence(job.detail),
    }


def _balloon(report: balloons.BalloonReport) -> tuple[str, Row]:
    where = 'BalloonReport.'
    if len(report.cpus) > _MAX_VALUES:
        raise wire.MalformedMessage('%scpus: more than %d' % (
            where, _MAX_VALUES))
    row: Row = {
        'state': report.state.value,
        'order_state': report.order_state and report.order_state.value,
        'cpus': [_count(where + 'cpus', cpu) for cpu in report.cpus],
        'since': _time(where + 'since', report.since),
        'not_before': _maybe(_time, where + 'not_before',
                             report.not_before),
        'code': _maybe(_word, where + 'code', report.code),
    }
    for name in ('vcpus', 'online_vcpus', 'min_vcpus', 'floor_vcpus',
                 'failures', 'generation'):
        row[name] = _count(where + name, getattr(report, name))
    for name in ('auto', 'dry_run', 'pinned', 'guest_answers'):
        row[name] = getattr(report, name)
    for name in ('cause', 'detail'):
        value = getattr(report, name)
        row[name] = None if value is None else sentence(value)
    return _uuid(where + 'instance_uuid', report.instance_uuid), row


def _balloon_change(change: balloons.BalloonChange) -> tuple[str, Row]:
    where = 'BalloonChange.'
    row: Row = {
        'instance_uuid': _uuid(where + 'instance_uuid',
                               change.instance_uuid),
        'started_at': _time(where + 'started_at', change.started_at),
        'ended_at': _maybe(_time, where + 'ended_at', change.ended_at),
        'manual': change.manual,
        'cause': sentence(change.cause),
        'took_ms': _maybe(_count, where + 'took_ms', change.took_ms),
        'outcome': change.outcome and change.outcome.value,
        'detail': None if change.detail is None else sentence(
            change.detail),
    }
    for name in ('vcpus', 'before_vcpus', 'online_vcpus'):
        row[name] = _count(where + name, getattr(change, name))
    return _uuid(where + 'uuid', change.uuid), row


def _profile(profile: profiles.ErrorProfile) -> Row:
    row = _measured('ErrorProfile.', profile)
    row['points'] = [_point(point) for point in profile.points]
    return row


def _measured(where: str, profile: profiles.Profile) -> Row:
    """What every kind of profile has."""
    row: Row = {
        'uuid': _uuid(where + 'uuid', profile.uuid),
        'source': profile.source.value,
        'kernel': _clean(profile.kernel)[:_MAX_NAME_CHARS],
        'load': _number(where + 'load', profile.load),
        'quick': profile.quick,
        'complete': profile.complete,
        'features': _object(where + 'features', profile.features),
        'notes': [sentence(note) for note in profile.notes[:_MAX_NOTES]],
    }
    for name in ('version', 'tick_us', 'cpus'):
        row[name] = _count(where + name, getattr(profile, name))
    for name in ('started_at', 'finished_at'):
        row[name] = _time(where + name, getattr(profile, name))
    return row


def _point(point: profiles.ErrorPoint) -> Row:
    where = 'ErrorPoint.'
    row: Row = {
        'backend': _word(where + 'backend', point.backend),
        'probe': point.probe.value,
    }
    for name in ('period_us', 'share_ppm', 'contenders', 'window_us', 'n'):
        row[name] = _count(where + name, getattr(point, name))
    for name in ('mean_ppm', 'min_ppm', 'max_ppm', 'abs_p50_ppm',
                 'abs_p95_ppm', 'abs_p99_ppm', 'long_mean_ppm'):
        row[name] = _integer(where + name, getattr(point, name))
    for name in ('quantiles_ppm', 'counts', 'lowest_ppm', 'largest_ppm'):
        values = getattr(point, name)
        # How many there are is the model's of the agent's release.
        if not 0 < len(values) <= _MAX_VALUES:
            raise wire.MalformedMessage(
                '%s: %d values are not 1 to %d' % (
                    where + name, len(values), _MAX_VALUES))
        row[name] = [_integer(where + name, value) for value in values]
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
        'n': _count(where + 'n', profile.n),
        'r2': _number(where + 'r2', profile.r2),
        'residual_ns': _number(where + 'residual_ns', profile.residual_ns),
        'prices': [_price(price) for price in profile.prices],
        'points': [_overhead_point(point) for point in profile.points],
    }


def _price(price: profiles.OverheadPrice) -> Row:
    where = 'OverheadPrice.'
    return {'term': _word(where + 'term', price.term),
            'cost_ns': _number(where + 'cost_ns', price.cost_ns),
            'error_ns': _maybe(_number, where + 'error_ns', price.error_ns)}


def _overhead_point(point: profiles.OverheadPoint) -> Row:
    where = 'OverheadPoint.'
    return {name: _word(where + name, value) if name == 'experiment'
            else _count(where + name, value)
            for name, value in point.to_dict().items()}

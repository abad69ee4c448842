# SPDX-License-Identifier: Apache-2.0

"""``/metrics``: figures of all hosts and of this service, for Prometheus."""

import collections
from collections.abc import Iterable
from collections.abc import Iterator

import flask
import prometheus_client
from prometheus_client import core

from vsched_api.metric_families import fleet
from vsched_api.operations import hosts
from vsched_api.operations import metrics
from vsched_api.policies import metrics as policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import request_metrics
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import fields
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.metrics import family

BLUEPRINT = flask.Blueprint('metrics', __name__)

_MCPU_PER_CORE = 1000

#: Codes that a later release stores.
_OTHER = 'other'
#: Codes of events: all that are not of answers to requests only.
_CODES = frozenset(
    code
    for code in errors.Code
    if not code.startswith(('vsched.request.', 'vsched.undefined_'))
)


@BLUEPRINT.get('/metrics')
@documentation.operation(
    policies.SHOW,
    None,
    media={'text/plain': {'type': 'string'}},
    scheme=documentation.SCRAPE_TOKEN,
)
def show() -> flask.Response:
    """Read the figures as they are now, in the text form of Prometheus."""
    own = services.current()
    if own.scrapers.match(flask.request):
        authorization.accept()
    else:
        authorization.enforce(policies.SHOW)
    validation.query(fields.NOTHING)
    options = own.conf.metrics
    found = metrics.read(
        own.database,
        own.now(),
        own.conf.api.host_down_after_s,
        options.max_instances if options.per_instance else 0,
    )
    return flask.Response(
        request_metrics.render(_all(found, own.requests)),
        content_type=prometheus_client.CONTENT_TYPE_LATEST,
    )


def _all(
    found: metrics.Metrics, own: request_metrics.RequestMetrics
) -> Iterator[core.Metric]:
    yield from _hosts(found.hosts)
    yield from _reservations(found)
    yield from _events(found)
    yield _jobs(found.jobs)
    yield _one(fleet.SNAPSHOT_HOSTS, found.snapshot_hosts)
    yield _one(fleet.SNAPSHOT_CHANGED, found.snapshot_changed_at)
    yield _one(fleet.INSTANCES_OMITTED, found.omitted)
    yield from _instances(found.instances)
    yield from own.collect()


def _one(which: family.Family, value: float | None) -> core.Metric:
    made = which.samples()
    if value is not None:
        made.add_metric([], value)
    return made


def _hosts(found: Iterable[metrics.HostFigures]) -> Iterator[core.Metric]:
    made = {
        one: one.samples() for one in fleet.FLEET if one.labels == ('host',)
    }
    info = fleet.HOST_INFO.samples()
    use = fleet.HOST_CPU.samples()
    for one in found:
        for which, value in _values(one).items():
            if value is not None:
                made[which].add_metric([one.host.name], value)
        if one.host.info is not None:
            reported = one.host.info
            info.add_metric(
                [
                    one.host.name,
                    reported.agent_version,
                    reported.kernel,
                    reported.hypervisor,
                ],
                1,
            )
        if one.time is not None and one.time.interval_us > 0:
            for name in ('guest', 'direct', 'shared', 'own', 'idle', 'steal'):
                use.add_metric(
                    [one.host.name, name],
                    getattr(one.time, name + '_us') / one.time.interval_us,
                )
    yield from made.values()
    yield info
    yield use


def _values(one: metrics.HostFigures) -> dict[family.Family, float | None]:
    host, info = one.host, one.host.info
    return {
        fleet.HOST_UP: int(host.state is hosts.State.UP),
        fleet.HOST_BATCHES: host.last_batch,
        fleet.HOST_LAST_REPORT: host.last_report_at,
        fleet.HOST_REPORT_DELAY: host.report_delay_s,
        fleet.HOST_CLOCK_SKEW: host.clock_skew_s,
        fleet.HOST_INSTANCES: host.instances,
        fleet.HOST_CONTRADICTIONS: (
            None
            if host.verification is None
            else len(host.verification.contradictions)
        ),
        fleet.HOST_CERTIFIED: int(one.certified),
        fleet.HOST_USAGE_TIMESTAMP: one.used_at,
        fleet.HOST_UNFOLDED: one.unfolded,
        **(
            {}
            if info is None
            else {
                fleet.HOST_CORES: info.cpus,
                fleet.HOST_CAPACITY: info.capacity_mcpu / _MCPU_PER_CORE,
                fleet.HOST_RESERVED: info.admitted_mcpu / _MCPU_PER_CORE,
                fleet.HOST_RESERVE: info.reserve_mcpu / _MCPU_PER_CORE,
                fleet.HOST_LEAKED: info.leaked_mcpu / _MCPU_PER_CORE,
            }
        ),
    }


def _reservations(found: metrics.Metrics) -> Iterator[core.Metric]:
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    for host, state, count in found.reservations:
        counts[host, state] += count
    made = fleet.RESERVATIONS.samples()
    for one in found.hosts:
        for state in messages.State:
            made.add_metric(
                [one.host.name, state], counts[one.host.name, state]
            )
    yield made


def _events(found: metrics.Metrics) -> Iterator[core.Metric]:
    by_host: collections.Counter[tuple[str, str]] = collections.Counter(
        {
            (one.host.name, code): 0
            for one in found.hosts
            for code in fleet.ALERT_CODES
        }
    )
    by_code: collections.Counter[str] = collections.Counter()
    for host, stored, count in found.events:
        code = stored if stored in _CODES else _OTHER
        by_host[host, code] += count
        by_code[code] += count
    made = fleet.HOST_EVENTS.samples()
    for labels, count in by_host.items():
        made.add_metric(labels, count)
    yield made
    made = fleet.EVENTS.samples()
    for code in (*sorted(_CODES), _OTHER):
        made.add_metric([code], by_code[code])
    yield made


def _jobs(found: Iterable[tuple[str, str, int]]) -> core.Metric:
    counts = {(kind, state): count for kind, state, count in found}
    made = fleet.JOBS.samples()
    for kind in messages.JobKind:
        for state in messages.JobState:
            made.add_metric([kind, state], counts.get((kind, state), 0))
    return made


def _instances(found: Iterable[metrics.Usage]) -> Iterator[core.Metric]:
    made = {which: which.samples() for which in fleet.INSTANCES}
    for one in found:
        if one.interval_us < 1:
            continue
        labels = [one.host, one.instance_uuid]
        made[fleet.INSTANCE_INFO].add_metric(
            [
                *labels,
                one.server_name or '',
                one.project_id or '',
                one.flavor_name or '',
            ],
            1,
        )
        values: dict[family.Family, float] = {
            fleet.INSTANCE_USED: one.guest_us / one.interval_us,
            fleet.INSTANCE_RUN_DELAY: one.wait_us / one.interval_us,
            fleet.INSTANCE_CHARGED: (one.direct_us + one.shared_us)
            / one.interval_us,
        }
        if one.promised_us is not None:
            values[fleet.INSTANCE_RESERVED] = one.promised_us / one.interval_us
        if one.promised_us:
            values[fleet.INSTANCE_ERROR] = (
                one.promised_guest_us - one.promised_us
            ) / one.promised_us
        for which, value in values.items():
            made[which].add_metric(labels, value)
    yield from made.values()

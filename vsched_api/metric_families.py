# SPDX-License-Identifier: Apache-2.0

"""Every metric that the REST service and the collector expose.

Names follow Prometheus: base units (seconds, cores, ratios), ``_total`` for
counters, ``_info`` for metrics whose labels are the content. The documentation
lists them from here. Each label has a bounded set of values: hosts, instances
up to ``[metrics] max_instances``, and words of this project.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses
import enum
from importlib import metadata

import prometheus_client
from prometheus_client import core
from prometheus_client import registry as registries


class Kind(enum.StrEnum):
    """The types of metrics."""

    GAUGE = 'gauge'
    COUNTER = 'counter'
    HISTOGRAM = 'histogram'
    INFO = 'info'


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Family:
    """A metric: all series of one name.

    :param name: as it is exposed, with ``_total`` or ``_info``.
    :param text: what it measures, one or more sentences.
    :param labels: the names of its labels.
    :param buckets: the upper bounds of a histogram.
    """

    name: str
    kind: Kind
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    def samples(self) -> core.GaugeMetricFamily | core.CounterMetricFamily:
        """Return a family for a scrape, without any sample.

        :raises ValueError: for a histogram.
        """
        if self.kind is Kind.HISTOGRAM:
            raise ValueError('%s is a histogram' % self.name)
        if self.kind is Kind.COUNTER:
            return core.CounterMetricFamily(
                self.name, self.text, labels=self.labels
            )
        # An info metric is a gauge of 1 in the text format.
        return core.GaugeMetricFamily(self.name, self.text, labels=self.labels)

    def counter(
        self, registry: registries.CollectorRegistry
    ) -> prometheus_client.Counter:
        """Return a counter of this process."""
        return prometheus_client.Counter(
            self.name, self.text, self.labels, registry=registry
        )

    def gauge(
        self, registry: registries.CollectorRegistry
    ) -> prometheus_client.Gauge:
        """Return a gauge of this process."""
        return prometheus_client.Gauge(
            self.name, self.text, self.labels, registry=registry
        )

    def histogram(
        self, registry: registries.CollectorRegistry
    ) -> prometheus_client.Histogram:
        """Return a histogram of this process."""
        return prometheus_client.Histogram(
            self.name,
            self.text,
            self.labels,
            registry=registry,
            buckets=self.buckets,
        )


def _gauge(name: str, text: str, *labels: str) -> Family:
    return Family(name, Kind.GAUGE, text, labels)


def _counter(name: str, text: str, *labels: str) -> Family:
    return Family(name, Kind.COUNTER, text, labels)


#: Durations of requests and of transactions, in seconds.
DURATIONS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

# Hosts: GET /metrics of the REST service, from the database.
HOST_UP = _gauge(
    'vsched_host_up',
    '1 if the last report of the host is newer than [api] '
    'host_down_after_s, otherwise 0.',
    'host',
)
HOST_INFO = Family(
    'vsched_host_info',
    Kind.INFO,
    'Software of the host, as its agent reports it. The value is 1.',
    ('host', 'agent_version', 'kernel', 'hypervisor'),
)
HOST_BATCHES = _counter(
    'vsched_host_batches_total',
    'Number of the last batch that was stored. Batches that an agent had to '
    'drop are counted.',
    'host',
)
HOST_LAST_REPORT = _gauge(
    'vsched_host_last_report_timestamp_seconds',
    'When the last batch of the host was stored, in seconds since the epoch, '
    "by the collector's clock.",
    'host',
)
HOST_REPORT_DELAY = _gauge(
    'vsched_host_report_delay_seconds',
    'How old the last batch was when it was stored. It is large while an '
    'agent sends what waited in its outbox.',
    'host',
)
HOST_CLOCK_SKEW = _gauge(
    'vsched_host_clock_skew_seconds',
    "How far the clock of the host was ahead of the collector's at the last "
    'report; negative if it was behind.',
    'host',
)
HOST_INSTANCES = _gauge(
    'vsched_host_instances', 'Instances that the host lists.', 'host'
)
HOST_CORES = _gauge('vsched_host_cores', 'Online CPUs of the host.', 'host')
HOST_CAPACITY = _gauge(
    'vsched_host_capacity_cores',
    'CPU capacity that reservations may use in total.',
    'host',
)
HOST_RESERVED = _gauge(
    'vsched_host_reserved_cores',
    'CPU capacity that applied reservations use.',
    'host',
)
HOST_RESERVE = _gauge(
    'vsched_host_kept_back_cores',
    'CPU capacity that is kept back for the host itself.',
    'host',
)
HOST_LEAKED = _gauge(
    'vsched_host_leaked_cores',
    'Bandwidth that the kernel counts as reserved and that no thread has.',
    'host',
)
HOST_CONTRADICTIONS = _gauge(
    'vsched_host_contradictions',
    'Contradictions between the reports of the host and Nova or placement '
    'in the last comparison.',
    'host',
)
HOST_CERTIFIED = _gauge(
    'vsched_host_certified',
    '1 if the host has certificates of its allocation error that hold now, '
    'otherwise 0.',
    'host',
)
HOST_CPU = _gauge(
    'vsched_host_cpu_cores',
    'CPUs by use, mean of the newest minute: guest (vCPUs), direct (threads '
    'of the host that serve one instance), shared (other work of the host '
    'for instances), own (the rest of the host), idle, and steal (taken by a '
    'hypervisor below).',
    'host',
    'use',
)
HOST_USAGE_TIMESTAMP = _gauge(
    'vsched_host_usage_timestamp_seconds',
    'End of the minute whose usage is shown for the host and its instances, '
    'in seconds since the epoch.',
    'host',
)
HOST_UNFOLDED = _gauge(
    'vsched_host_unfolded_batches',
    'Batches of the host that are not in the sums of usage yet.',
    'host',
)
HOST_EVENTS = _gauge(
    'vsched_host_events_last_hour',
    'Events of the host in the last hour that is stored, by code. A code '
    'without an event has no series.',
    'host',
    'code',
)
RESERVATIONS = _gauge(
    'vsched_reservations', 'Reservations in each state.', 'host', 'state'
)

# Instances.
INSTANCE_RESERVED = _gauge(
    'vsched_instance_reserved_cores',
    'CPU capacity that the enforced reservation of the instance gave to its '
    'vCPUs, mean of the newest minute.',
    'host',
    'instance_uuid',
)
INSTANCE_USED = _gauge(
    'vsched_instance_used_cores',
    'CPUs that the vCPUs of the instance used, mean of the newest minute.',
    'host',
    'instance_uuid',
)
INSTANCE_ERROR = _gauge(
    'vsched_instance_allocation_error_ratio',
    '(got - reserved) / reserved in the newest minute: above 0 when the '
    'instance got more than reserved. It is far below 0 for an idle '
    'instance.',
    'host',
    'instance_uuid',
)
INSTANCE_RUN_DELAY = _gauge(
    'vsched_instance_run_delay_ratio',
    'Seconds that vCPUs of the instance were runnable and waited for a CPU, '
    'per second, mean of the newest minute, summed over the vCPUs.',
    'host',
    'instance_uuid',
)
INSTANCE_CHARGED = _gauge(
    'vsched_instance_charged_host_cores',
    'CPUs that the host used on behalf of the instance, mean of the newest '
    'minute: its emulator, I/O and vhost threads, and its part of work that '
    'no thread owns.',
    'host',
    'instance_uuid',
)
INSTANCES_OMITTED = _gauge(
    'vsched_metrics_instances_omitted',
    'Instances that have no series because [metrics] max_instances was '
    'reached; 0 if none was left out.',
)

# The fleet.
EVENTS = _gauge(
    'vsched_events_last_hour',
    'Events of all hosts in the last hour that are stored, by code.',
    'code',
)
JOBS = _gauge('vsched_jobs', 'Jobs that are stored.', 'kind', 'state')
SNAPSHOT_HOSTS = _gauge(
    'vsched_snapshot_hosts', 'Hosts in the snapshot that schedulers read.'
)
SNAPSHOT_CHANGED = _gauge(
    'vsched_snapshot_last_change_timestamp_seconds',
    'When the snapshot that schedulers read changed last, in seconds since '
    'the epoch.',
)

#: Of GET /metrics, from the database.
FLEET = (
    HOST_UP,
    HOST_INFO,
    HOST_BATCHES,
    HOST_LAST_REPORT,
    HOST_REPORT_DELAY,
    HOST_CLOCK_SKEW,
    HOST_INSTANCES,
    HOST_CORES,
    HOST_CAPACITY,
    HOST_RESERVED,
    HOST_RESERVE,
    HOST_LEAKED,
    HOST_CONTRADICTIONS,
    HOST_CERTIFIED,
    HOST_CPU,
    HOST_USAGE_TIMESTAMP,
    HOST_UNFOLDED,
    HOST_EVENTS,
    RESERVATIONS,
    EVENTS,
    JOBS,
    SNAPSHOT_HOSTS,
    SNAPSHOT_CHANGED,
    INSTANCES_OMITTED,
)

#: Of GET /metrics, unless [metrics] per_instance is false.
INSTANCES = (
    INSTANCE_RESERVED,
    INSTANCE_USED,
    INSTANCE_ERROR,
    INSTANCE_RUN_DELAY,
    INSTANCE_CHARGED,
)

API_INFO = Family(
    'vsched_api_info',
    Kind.INFO,
    'Version of the REST service. The value is 1.',
    ('version',),
)
API_REQUESTS = _counter(
    'vsched_api_requests_total',
    'Requests that were answered, by route, method and class of the status. '
    'The route is the template, "unmatched" for addresses that no route has '
    'and for requests that were answered before a route was found.',
    'route',
    'method',
    'status',
)
API_DURATION = Family(
    'vsched_api_request_duration_seconds',
    Kind.HISTOGRAM,
    'Time from the headers of a request to the end of its answer.',
    ('route', 'method'),
    DURATIONS,
)

#: Of GET /metrics, about the REST service itself.
API = (API_INFO, API_REQUESTS, API_DURATION)

COLLECTOR_INFO = Family(
    'vsched_collector_info',
    Kind.INFO,
    'Version of the collector. The value is 1.',
    ('version',),
)
BATCHES_STORED = _counter(
    'vsched_collector_batches_stored_total', 'Batches that were stored.'
)
BATCHES_REPEATED = _counter(
    'vsched_collector_batches_repeated_total',
    'Batches that had been stored before.',
)
BATCHES_REFUSED = _counter(
    'vsched_collector_batches_refused_total',
    'Batches that were not stored: invalid (malformed, or with a value that '
    'the database does not take), replaced (of an agent that another one has '
    'followed), unopened (of an agent that did not name the last batch), '
    'database (unavailable; the agent sends it again), defect (see the log).',
    'cause',
)
REQUESTS_REFUSED = _counter(
    'vsched_collector_requests_unauthenticated_total',
    'Requests of agents that were refused because their signature is missing '
    'or wrong.',
)
REQUESTS_UNSIGNED = _counter(
    'vsched_collector_requests_unsigned_total',
    'Requests of agents without a signature that were accepted because [bus] '
    'authentication is permissive.',
)
BATCH_DURATION = Family(
    'vsched_collector_batch_duration_seconds',
    Kind.HISTOGRAM,
    'Time to store a batch, waits for other batches included.',
    (),
    DURATIONS,
)
OUTBOX_AGE = Family(
    'vsched_collector_outbox_age_seconds',
    Kind.HISTOGRAM,
    "How long batches had waited in agents' outboxes when they were sent, by "
    "the agents' clocks.",
    (),
    (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0),
)
SAMPLES_STORED = _counter(
    'vsched_collector_samples_stored_total',
    'Samples of CPU time that were stored: of instances and of hosts.',
    'subject',
)
EVENTS_STORED = _counter(
    'vsched_collector_events_total',
    'Events in batches that were stored, by code; "other" for a code that '
    'this release does not know.',
    'code',
)
ROWS_DELETED = _counter(
    'vsched_collector_rows_deleted_total',
    'Rows that were deleted because they were past their retention time or '
    'number, or of a deleted host.',
    'kind',
)
TASK_DURATION = Family(
    'vsched_collector_task_duration_seconds',
    Kind.HISTOGRAM,
    'Time that a periodic task took, failed runs included.',
    ('task',),
    (0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0),
)
TASK_SUCCESS = _gauge(
    'vsched_collector_task_last_success_timestamp_seconds',
    'When a periodic task succeeded last, in seconds since the epoch; at '
    'first when the collector started.',
    'task',
)
TASK_FAILURES = _counter(
    'vsched_collector_task_failures_total',
    'Runs of a periodic task that failed.',
    'task',
)

#: Of the collector's own endpoint.
COLLECTOR = (
    COLLECTOR_INFO,
    BATCHES_STORED,
    BATCHES_REPEATED,
    BATCHES_REFUSED,
    REQUESTS_REFUSED,
    REQUESTS_UNSIGNED,
    BATCH_DURATION,
    OUTBOX_AGE,
    SAMPLES_STORED,
    EVENTS_STORED,
    ROWS_DELETED,
    TASK_DURATION,
    TASK_SUCCESS,
    TASK_FAILURES,
)

#: All of them, by where they are exposed.
ALL = FLEET + INSTANCES + API + COLLECTOR


def version() -> str:
    """Return the version of this project."""
    try:
        return metadata.version('vsched')
    except metadata.PackageNotFoundError:
        # Run from a source tree that is not installed.
        return 'unknown'


class Exposed(registries.Collector):
    """The metrics of a registry without the times of their creation.

    These would double the number of series, and are no metrics of ours.
    """

    def __init__(self, registry: registries.CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics."""
        return without_created(self._registry.collect())


def without_created(metrics: Iterable[core.Metric]) -> Iterator[core.Metric]:
    """Yield metrics without the samples that prometheus_client adds."""
    for metric in metrics:
        metric.samples = [
            one for one in metric.samples if not one.name.endswith('_created')
        ]
        yield metric

# SPDX-License-Identifier: Apache-2.0

"""Metrics of hosts and instances, which the REST service exposes."""

from vsched_lib.contract import errors
from vsched_lib.metrics import family

_gauge = family.gauge
_counter = family.counter
_Family = family.Family

# Hosts: GET /metrics of the REST service, from the database.
HOST_UP = _gauge(
    'vsched_host_up',
    '1 if the last report of the host is newer than [api] '
    'host_down_after_s, otherwise 0.',
    'host',
)
HOST_INFO = _Family(
    'vsched_host_info',
    family.Kind.INFO,
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
    'without an event has no series, unless an alert rule selects it.',
    'host',
    'code',
)
RESERVATIONS = _gauge(
    'vsched_reservations', 'Reservations in each state.', 'host', 'state'
)

#: The codes of :data:`HOST_EVENTS` that alert rules select. All hosts have
#: series of them: a rule without any seems to be broken.
ALERT_CODES = (
    errors.Code.CERTIFICATES_GRANTED,
    errors.Code.CERTIFICATES_WITHDRAWN,
    errors.Code.DRIFT_REPAIRED,
    errors.Code.REPORTS_DROPPED,
)

# Instances.
INSTANCE_INFO = _Family(
    'vsched_instance_info',
    family.Kind.INFO,
    'What Nova calls the instance. A label is empty while no agent has '
    'reported it. The value is 1.',
    ('host', 'instance_uuid', 'server_name', 'project_id', 'flavor_name'),
)
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
    INSTANCE_INFO,
    INSTANCE_RESERVED,
    INSTANCE_USED,
    INSTANCE_ERROR,
    INSTANCE_RUN_DELAY,
    INSTANCE_CHARGED,
)

# SPDX-License-Identifier: Apache-2.0

"""Metrics of an agent.

Unlike those of the REST service, which are of what was reported, they are
read on the host, also while bus, collectors or database are unavailable.
"""

from vsched_lib.metrics import family

_gauge = family.gauge
_counter = family.counter
_Family = family.Family

INFO = _Family(
    'vsched_agent_info',
    family.Kind.INFO,
    'Version of the agent, kernel and hypervisor of its host. The value is 1.',
    ('version', 'kernel', 'hypervisor'),
)
PASS_DURATION = _Family(
    'vsched_agent_pass_duration_seconds',
    family.Kind.HISTOGRAM,
    'Time of a pass that compares the state of the kernel with the '
    'reservations and samples the CPU time of the instances.',
    (),
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0),
)
LAST_PASS = _gauge(
    'vsched_agent_last_pass_timestamp_seconds',
    'When the last pass ended, in seconds since the epoch; at first when the '
    'agent started.',
)
STEP_FAILURES = _counter(
    'vsched_agent_step_failures_total',
    'Steps of a pass that failed, and are repeated with the next pass.',
    'step',
)
REPORTS = _counter(
    'vsched_agent_reports_total', 'Reports that were stored in the outbox.'
)
OUTBOX_REPORTS = _gauge(
    'vsched_agent_outbox_reports',
    'Reports that no collector had confirmed when the last one was stored.',
)
OUTBOX_AGE = _gauge(
    'vsched_agent_outbox_age_seconds',
    'Age of the oldest of them; 0 without any. The age of what an earlier '
    'agent has left counts from the start of this one.',
)
EVENTS = _counter('vsched_agent_events_total', 'Events, by code.', 'code')
RESERVATIONS = _gauge(
    'vsched_agent_reservations',
    'Reservations of running instances, by state.',
    'state',
)
CORES = _gauge('vsched_agent_cores', 'Online CPUs of the host.')
CAPACITY = _gauge(
    'vsched_agent_capacity_cores',
    'CPU capacity that reservations may use in total.',
)
ADMITTED = _gauge(
    'vsched_agent_admitted_cores',
    'CPU capacity that applied reservations use.',
)
LEAKED = _gauge(
    'vsched_agent_leaked_cores',
    'Deadline bandwidth that the kernel counts as reserved although no thread '
    'has it.',
)
HOST_CPU = _counter(
    'vsched_agent_cpu_seconds_total',
    'CPU time of the host, by use: guest (all instances), direct (threads of '
    'the host for an instance), shared (work for instances that no thread '
    'owns, an estimate), own (the rest), idle, steal.',
    'use',
)

INSTANCE_INFO = _Family(
    'vsched_agent_instance_info',
    family.Kind.INFO,
    'What libvirt (name) and Nova call the instance. A label is empty without '
    "Nova's metadata. The value is 1.",
    ('instance_uuid', 'name', 'server_name', 'project_id', 'flavor_name'),
)
RESERVED = _counter(
    'vsched_agent_instance_reserved_seconds_total',
    'CPU time to which the reservation of the instance amounts.',
    'instance_uuid',
)
GUEST = _counter(
    'vsched_agent_instance_guest_seconds_total',
    'CPU time of the vCPUs of the instance.',
    'instance_uuid',
)
WAIT = _counter(
    'vsched_agent_instance_wait_seconds_total',
    'Time for which vCPUs of the instance were runnable and did not run.',
    'instance_uuid',
)
CHARGED = _counter(
    'vsched_agent_instance_charged_seconds_total',
    'CPU time that the host used for the instance: direct (its own threads) '
    'and shared (its part of what no thread owns, an estimate).',
    'instance_uuid',
    'use',
)

#: Of each instance, unless ``[agent] metrics_per_instance`` is false.
INSTANCES = (INSTANCE_INFO, RESERVED, GUEST, WAIT, CHARGED)

ALL = (
    INFO,
    PASS_DURATION,
    LAST_PASS,
    STEP_FAILURES,
    REPORTS,
    OUTBOX_REPORTS,
    OUTBOX_AGE,
    EVENTS,
    RESERVATIONS,
    CORES,
    CAPACITY,
    ADMITTED,
    LEAKED,
    HOST_CPU,
    *INSTANCES,
)

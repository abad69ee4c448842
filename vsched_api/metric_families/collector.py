# SPDX-License-Identifier: Apache-2.0

"""Metrics of a collector."""

from vsched_lib.metrics import family

_gauge = family.gauge
_counter = family.counter
_Family = family.Family

INFO = _Family(
    'vsched_collector_info',
    family.Kind.INFO,
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
BATCH_DURATION = _Family(
    'vsched_collector_batch_duration_seconds',
    family.Kind.HISTOGRAM,
    'Time to store a batch, waits for other batches included.',
    (),
    family.DURATIONS,
)
OUTBOX_AGE = _Family(
    'vsched_collector_outbox_age_seconds',
    family.Kind.HISTOGRAM,
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
TASK_DURATION = _Family(
    'vsched_collector_task_duration_seconds',
    family.Kind.HISTOGRAM,
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
ALL = (
    INFO,
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

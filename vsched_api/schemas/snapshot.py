# SPDX-License-Identifier: Apache-2.0

"""What requests about the snapshot may say, and what answers do."""

from vsched_api.schemas import fields
from vsched_api.schemas import hosts
from vsched_api.schemas import shapes
from vsched_lib.contract import snapshot

SHOW_QUERY = fields.closed(
    {
        'since': {
            'type': 'integer',
            'minimum': 0,
            'maximum': 2**63 - 1,
            'description': 'The version of an earlier answer: only hosts '
            'that changed after it.',
        }
    }
)

_FACTS = shapes.closed(
    shapes.message(
        snapshot.Facts,
        {
            'cpus': 'Number of CPUs.',
            'tick_us': "The kernel's scheduler tick.",
            'capacity_mcpu': 'What reservations may use in total.',
            'backends': 'The backends that the host can use.',
        },
        policy=shapes.optional(
            hosts.POLICY,
            'How the agent uses its measurements; ``null`` from an agent '
            'that does not report it: then the defaults hold.',
        ),
    ),
    'SnapshotFacts',
)

_CERTIFICATE = shapes.closed(
    shapes.message(
        snapshot.Certificate,
        {
            'backend': 'The backend.',
            'period_us': 'The period.',
            'shares_ppm': 'The measured shares of a CPU.',
            'lowers_ppm': 'For each share the bound that errors of one '
            'second in a hundred are below at most; ``null`` when there were '
            'too few samples.',
        },
    ),
    'SnapshotCertificate',
)

_HOST = shapes.closed(
    shapes.message(
        snapshot.Host,
        {
            'name': 'Name of the host.',
            'version': 'The version of its last change.',
            'admitted_mcpu': 'What applied reservations use.',
            'prices_ns': 'What I/O costs there, by event; ``null`` when that '
            'was not measured.',
        },
        facts=_FACTS,
        certificates=shapes.items(
            _CERTIFICATE,
            'Empty when the host was not measured, or runs another kernel '
            'since.',
        ),
    ),
    'SnapshotHost',
)

_SLOWDOWN = shapes.closed(
    shapes.message(
        snapshot.Slowdown,
        {
            'victim': 'The workload class that is slowed down.',
            'neighbour': 'The workload class beside it.',
            'slowdown': 'As a part of the time alone.',
            'samples': 'How many measurements it rests on.',
        },
    ),
    'SnapshotSlowdown',
)

SNAPSHOT = shapes.closed(
    shapes.message(
        snapshot.Snapshot,
        {
            'version': 'What to ask for changes since, next time.',
            'full': 'Whether these are all hosts: others do not exist any '
            'more. An answer to ``since`` is full when there never was such '
            'a version, as after the database was restored from a backup.',
            'more': 'Whether there are further changes: ask again at once. '
            'One answer has ``[snapshot] delta_hosts`` changed hosts at '
            'most.',
            'removed': 'Hosts that do not exist any more: they were deleted, '
            'or have not reported for ``[snapshot] silent_days``.',
            'down': 'All hosts whose agent does not report.',
        },
        hosts=shapes.items(_HOST, 'The hosts.'),
        slowdowns=shapes.items(
            _SLOWDOWN,
            'How much one neighbour slows an instance down, by workload '
            'class, as far as it was measured.',
        ),
    ),
    'Snapshot',
)

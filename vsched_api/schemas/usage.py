# SPDX-License-Identifier: Apache-2.0

"""What requests about CPU time may say, and what answers do."""

from vsched_api.operations import usage
from vsched_api.operations import usage_counts
from vsched_api.operations import usage_totals
from vsched_api.schemas import fields
from vsched_api.schemas import servers
from vsched_api.schemas import shapes
from vsched_lib.model import executions

LIST_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': {
            'type': 'integer',
            'minimum': 1,
            'maximum': 2**63 - 1,
            'description': 'From the link to the next page.',
        },
        'sort_dir': {
            'type': 'string',
            'enum': ['asc', 'desc'],
            'description': '``asc``, the oldest first, without it; or '
            '``desc``.',
        },
        'of': {
            'type': 'string',
            'enum': list(map(str, usage.Subject)),
            'description': '``instances``, also without it; or ``hosts``.',
        },
        'host': fields.described(
            fields.NAME,
            'Only those from this host. Sums are of the host as a whole, '
            'unless instances are selected as well.',
        ),
        'instance_uuid': fields.INSTANCES,
        **{
            name: fields.described(
                one, '%s With ``of=instances`` only.' % one['description']
            )
            for name, one in (
                ('project_id', servers.PROJECT),
                ('server_name', servers.NAME),
                ('flavor_name', servers.FLAVOR),
            )
        },
        'start': fields.described(
            fields.TIME,
            'Intervals that ended after this time, in ISO 8601; UTC unless '
            'it names another zone.',
        ),
        'end': fields.described(
            fields.TIME, 'Intervals that ended at this time or before.'
        ),
        'resolution': {
            'type': 'string',
            'enum': list(map(str, usage.Resolution)),
            'description': '``raw`` (intervals of a second or so, also '
            'without it), ``minute`` or ``hour``.',
        },
        'format': {
            'type': 'string',
            'enum': ['json', 'csv'],
            'description': '``json``, also without it unless the header '
            '``Accept`` prefers ``text/csv``; or ``csv``.',
        },
    }
)

TOTALS_QUERY = fields.closed(
    {
        'limit': fields.described(
            fields.LIMIT,
            'The totals of how many hosts at most; never more than %d, nor '
            'than ``[api] max_limit``.' % usage_totals.MAX_HOSTS,
        ),
        'marker': LIST_QUERY['properties']['marker'],
        'window_us': {
            'type': 'integer',
            'minimum': 1,
            'maximum': usage_totals.MAX_WINDOW_US,
            'description': 'Intervals that ended less than this time before '
            'the newest one of the same host; %d without it.'
            % usage_totals.WINDOW_US,
        },
        'host': fields.described(
            fields.NAME, 'Only those from this host, also when it is down.'
        ),
        'instance_uuid': fields.INSTANCES,
        'project_id': servers.PROJECT,
        'server_name': servers.NAME,
        'flavor_name': servers.FLAVOR,
    }
)

_WORK = {
    'direct_us': "CPU time that the host's own threads for the instance "
    'used: emulator, I/O threads, vhost.',
    'direct_wait_us': 'Time in which they were runnable and did not run.',
    'shared_us': "The instance's part of the host's work that no thread "
    'owns, such as interrupts; an estimate.',
    'wakeups': "How often the host's threads for it began to run.",
    'net_rx_packets': 'Packets that the instance received.',
    'net_tx_packets': 'Packets that the instance sent.',
    'disk_read_requests': 'Reads that its disks completed.',
    'disk_write_requests': 'Writes that its disks completed.',
}

_COUNTS = {
    'executions': 'How often vCPU threads began to run, after they woke up '
    'or were preempted.',
    'emulator_wakeups': "The part of ``wakeups`` of QEMU's main thread.",
    'emulator_wait_us': "The part of ``direct_wait_us`` of QEMU's main "
    'thread.',
    'iothread_wakeups': 'The part of ``wakeups`` of threads dedicated to '
    'disks.',
    'iothread_wait_us': 'The part of ``direct_wait_us`` of threads dedicated '
    'to disks.',
    'vhost_wakeups': "The part of ``wakeups`` of vhost's workers.",
    'vhost_wait_us': "The part of ``direct_wait_us`` of vhost's workers.",
}

_FIGURES = {
    'executions_per_s': '``executions`` per second.',
    'io_per_execution': 'Packets and disk requests for each execution of a '
    'vCPU.',
    'wait_per_execution_us': 'How long a vCPU waited before an execution, on '
    'average: ``wait_us`` / ``executions``.',
    'wakeups_per_s': '``wakeups`` per second.',
    'io_per_wakeup': 'Packets and disk requests for each wakeup of the '
    "host's threads.",
    'wait_per_wakeup_us': 'How long they waited before it, on average: '
    '``direct_wait_us`` / ``wakeups``.',
    'emulator_wakeups_per_s': '``emulator_wakeups`` per second.',
    'emulator_wait_per_wakeup_us': '``emulator_wait_us`` / '
    '``emulator_wakeups``.',
    'iothread_wakeups_per_s': '``iothread_wakeups`` per second.',
    'iothread_wait_per_wakeup_us': '``iothread_wait_us`` / '
    '``iothread_wakeups``.',
    'vhost_wakeups_per_s': '``vhost_wakeups`` per second.',
    'vhost_wait_per_wakeup_us': '``vhost_wait_us`` / ``vhost_wakeups``.',
}

# What follows the columns of an instance's time, in their order.
_MORE = {
    **{name: shapes.integer(_WORK[name]) for name in usage_counts.WORK},
    **{
        name: shapes.optional(shapes.integer(_COUNTS[name]))
        for name in executions.COUNTS
    },
    **{
        name: shapes.optional(shapes.number(_FIGURES[name]))
        for name in executions.FIGURES
    },
}

_HOST = shapes.string('The host.')
_OF_HOST = servers.hidden(_HOST)
_GUEST_US = shapes.integer('Run time of all vCPU threads.')
_WAIT_US = shapes.integer('Time in which they were runnable and did not run.')
_RESERVED_US = shapes.optional(
    shapes.integer(
        'What the enforced reservation adds up to; ``null`` without one.'
    )
)
_GUEST_MCPU = shapes.optional(
    shapes.integer('``guest_us`` per time; ``null`` without a duration.')
)
_RESERVED_MCPU = shapes.optional(
    shapes.integer('``promised_us`` per time; ``null`` without one.')
)

#: The columns of samples, and of their sums. New ones go to the end.
SAMPLE = shapes.closed(
    {
        'instance_uuid': shapes.uuid('UUID of the instance.'),
        'host': _OF_HOST,
        'at': shapes.time('The end of the interval.'),
        'interval_us': shapes.integer('Length of the interval.'),
        'guest_us': _GUEST_US,
        'wait_us': _WAIT_US,
        'promised_us': _RESERVED_US,
        'guest_mcpu': _GUEST_MCPU,
        'promised_mcpu': _RESERVED_MCPU,
        'error_ppm': shapes.optional(
            shapes.integer(
                '(``guest_us`` − ``promised_us``) / ``promised_us``. Above 0 '
                'it got more than is reserved. An instance that was idle is '
                'far below 0 without any error.'
            )
        ),
        **_MORE,
        **servers.FIELDS,
    },
    'UsageSample',
)
BUCKET = shapes.closed(
    {
        'instance_uuid': shapes.optional(
            shapes.uuid('UUID of the instance; ``null`` for a host.')
        ),
        'host': _OF_HOST,
        'at': shapes.time(
            'The end of the minute or hour. What ended at this moment is in '
            'it.'
        ),
        'samples': shapes.integer(
            'How many intervals it has. The last minute and hour go on '
            'growing, and so does an earlier one when reports come late.'
        ),
        'instances': shapes.integer('How many instances they are of.'),
        'first_at': shapes.time('When the first interval began.'),
        'last_at': shapes.time('When the last one ended.'),
        'interval_us': shapes.integer('The sum of their lengths.'),
        'guest_us': _GUEST_US,
        'wait_us': _WAIT_US,
        'promised_us': _RESERVED_US,
        'promised_guest_us': shapes.integer(
            'The part of ``guest_us`` in intervals with a reservation.'
        ),
        'guest_mcpu': _GUEST_MCPU,
        'promised_mcpu': _RESERVED_MCPU,
        'error_ppm': shapes.optional(
            shapes.integer(
                '(``promised_guest_us`` − ``promised_us``) / ``promised_us``.'
            )
        ),
        **_MORE,
        **servers.FIELDS,
    },
    'UsageBucket',
)

#: Those of what the CPUs of a host did.
TIMES = {
    'cpu_us': shapes.integer(
        'The CPUs times the interval. ``idle_us``, ``steal_us``, '
        '``guest_us``, ``direct_us``, ``shared_us`` and ``own_us`` add up to '
        'it, but for the instant between two readings.'
    ),
    'idle_us': shapes.integer('Idle time.'),
    'steal_us': shapes.integer(
        'Taken by a hypervisor below the host, where there is one.'
    ),
    'irq_us': shapes.integer(
        'In interrupts, where the kernel counts it; part of the others.'
    ),
    'guest_us': shapes.integer('Run time of the vCPUs of all instances.'),
    'direct_us': shapes.integer(
        "CPU time of the host's own threads for all instances."
    ),
    'shared_us': shapes.integer(
        "The instances' part of the host's work that no thread owns."
    ),
    'own_us': shapes.integer("The rest of the host's CPU time."),
}
HOST_SAMPLE = shapes.closed(
    {
        'host': _HOST,
        'at': SAMPLE['properties']['at'],
        'interval_us': SAMPLE['properties']['interval_us'],
        'cpus': shapes.optional(
            shapes.integer('CPUs that were online all the time.')
        ),
        **TIMES,
    },
    'HostUsageSample',
)
HOST_BUCKET = shapes.closed(
    {
        'host': _HOST,
        **{
            name: BUCKET['properties'][name]
            for name in ('at', 'samples', 'first_at', 'last_at', 'interval_us')
        },
        **TIMES,
    },
    'HostUsageBucket',
)

_TOTAL_NAMES = (
    'interval_us',
    'guest_us',
    'wait_us',
    'promised_us',
    'promised_guest_us',
    'direct_us',
    'shared_us',
)
TOTAL = shapes.closed(
    {
        'instance_uuid': SAMPLE['properties']['instance_uuid'],
        'host': _OF_HOST,
        'at': shapes.time('The end of its newest interval.'),
        'samples': shapes.integer('How many intervals it is the sum of.'),
        **{name: BUCKET['properties'][name] for name in _TOTAL_NAMES},
        **servers.FIELDS,
    },
    'UsageTotal',
)
TOTALS = shapes.closed(
    {
        'totals': shapes.items(
            TOTAL,
            'Each instance of the hosts of the page, unsorted. One that was '
            'migrated is there once for each host.',
        ),
        'hosts': shapes.items(
            shapes.closed(
                {
                    'host': _HOST,
                    'newest_at': shapes.optional(
                        shapes.time(
                            'The end of its window; ``null`` without samples.'
                        )
                    ),
                    'covered_us': shapes.optional(
                        shapes.integer(
                            'When the window has more samples than are read, '
                            'the length of the part that the totals are of; '
                            '``null`` for all of it.'
                        )
                    ),
                },
                'UsageWindow',
            ),
            'The hosts of the page, each with its window. Empty for those '
            'whom the policy ``vsched:instances:show_host`` does not allow '
            'to see them.',
        ),
        'links': shapes.LINKS,
    }
)

LIST = shapes.closed(
    {
        'usage': {
            'type': 'array',
            'items': {'anyOf': [SAMPLE, BUCKET, HOST_SAMPLE, HOST_BUCKET]},
            'description': 'Samples or sums, of instances or of hosts, all '
            'of one kind.',
        },
        'links': shapes.LINKS,
    }
)

# SPDX-License-Identifier: Apache-2.0

"""What requests about hosts may say, and what answers do."""

from vsched_api.operations import audits
from vsched_api.operations import hosts
from vsched_api.schemas import fields
from vsched_api.schemas import shapes
from vsched_lib.contract import messages
from vsched_lib.contract import placement
from vsched_lib.contract import policy

LIST_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': fields.marker(fields.NAME, 'name of the host'),
        'state': {
            'type': 'string',
            'enum': list(map(str, hosts.State)),
            'description': 'Only those in this state.',
        },
        'name_prefix': fields.described(
            fields.NAME, 'Only those whose name begins with this.'
        ),
        'backend': fields.described(
            fields.BACKEND, 'Only those that can use this backend.'
        ),
        **fields.sorted_by(hosts.SORT_KEYS),
    }
)

DELETE_QUERY = fields.closed(
    {
        'force': {
            'type': 'boolean',
            'description': '``true`` to delete it also when it lists '
            'instances that no other host lists, as when it broke down and '
            'was not evacuated.',
        }
    }
)

POLICY = shapes.closed(
    shapes.message(
        policy.HostPolicy,
        {
            'confidence': 'The confidence of the bounds of errors.',
            'max_margin_ppm': 'The largest margin for errors, of a '
            'reservation.',
            'max_overhead_ppm': 'The largest part of a reservation that the '
            "host's work on its I/O may need.",
            'refuse_unpriced': 'Whether I/O without a measured cost is '
            'refused.',
        },
    ),
    'HostPolicy',
)

_PLACEMENT = shapes.closed(
    shapes.message(
        placement.PlacementInfo,
        {
            'state': '``off``, ``waiting`` for the resource provider of the '
            'compute node, ``synced`` or ``failed``.',
            'detail': 'What it waits for, or why it failed.',
            'provider_uuid': "The host's own resource provider. This and the "
            'figures are as of the last success.',
            'offered_mcpu': 'What instances may claim in total.',
            'claimed_mcpu': 'What instances claim.',
        },
    ),
    'HostPlacement',
)

_BACKEND = shapes.closed(
    shapes.message(
        messages.BackendInfo,
        {
            'name': 'The backend.',
            'usable': 'Whether the host can use it.',
            'reasons': 'Why it cannot.',
        },
    ),
    'HostBackend',
)

_VERIFICATION = shapes.closed(
    {
        'checked_at': shapes.time('When the comparison began.'),
        'cpus': shapes.optional(
            shapes.integer(
                'How many CPUs the compute node has for instances; ``null`` '
                'when unknown.'
            )
        ),
        'contradictions': shapes.items(
            shapes.closed(
                {
                    'code': shapes.string('The code of the event.'),
                    'detail': shapes.string('What differs.'),
                },
                'HostContradiction',
            ),
            'Each contradiction.',
        ),
    },
    'HostVerification',
)

_FINDING = shapes.closed(
    shapes.message(
        messages.HostFinding,
        {
            'level': '``problem`` or ``note``.',
            'subject': 'What was checked.',
            'text': 'What was found.',
            'remedy': 'What an operator can do about it; may be empty.',
        },
    ),
    'HostFinding',
)

_FINDING_COUNTS = shapes.closed(
    {
        messages.FindingLevel.PROBLEM.value: shapes.integer(
            'Findings that keep the host from guaranteeing CPU time.'
        ),
        messages.FindingLevel.NOTE.value: shapes.integer('Other findings.'),
    },
    'HostFindingCounts',
)

#: What the agent has reported of the host; null until then.
INFO = {
    'agent_version': shapes.string('Version of the agent.'),
    'kernel': shapes.string('Release of the kernel.'),
    'boot_id': shapes.string('Identifier of the boot.'),
    'hypervisor': shapes.string('Name of the hypervisor.'),
    'cpus': shapes.integer('Number of online CPUs.'),
    'tick_us': shapes.integer(
        "The kernel's scheduler tick. Budgets below it are overrun and repaid."
    ),
    'capacity_mcpu': shapes.integer(
        'What reservations may use in total, as the kernel admits it.'
    ),
    'admitted_mcpu': shapes.integer('What the applied reservations use.'),
    'reserve_mcpu': shapes.integer('What is kept back for the host itself.'),
    'leaked_mcpu': shapes.integer(
        'Deadline bandwidth that the kernel counts as reserved although no '
        'thread has it.'
    ),
    'budget_check_us': shapes.integer(
        '``[enforcement] budget_check_us`` of the agent: how soon expired '
        'budgets are checked; 0 for never.'
    ),
}

HOST = shapes.closed(
    {
        'name': shapes.string('Name of the host.'),
        'state': shapes.word(
            hosts.State,
            '``up`` while the last report is younger than ``[api] '
            'host_down_after_s``, else ``down``. A host that is down keeps '
            'its reservations in force.',
        ),
        'last_report_at': shapes.optional(
            shapes.time(
                'When the last report was received; ``null`` before the first.'
            )
        ),
        'clock_skew_s': shapes.optional(
            shapes.number(
                "By how many seconds the host's clock was ahead of the "
                "collector's when it last reported; below 0 when it was "
                'behind, ``null`` when unknown. Delays on the way count as '
                'behind. From 5 seconds ahead on, the times that the host '
                "sends are moved to the collector's clock; from "
                '``[collector] clock_skew_warning_s`` on, either way, there '
                'is an event.'
            )
        ),
        'last_batch': shapes.integer('Number of the last stored batch.'),
        'overrides_generation': shapes.integer(
            'Number of the last change of an override on this host.'
        ),
        'instances': shapes.integer('How many instances the host lists.'),
        'problem': shapes.optional(
            shapes.string(
                'Why the stored data of the host cannot be read; ``null`` '
                'when it can. Schedulers ignore such a host, and no instance '
                'fits on it.'
            )
        ),
        'links': shapes.LINKS,
        **{name: shapes.optional(schema) for name, schema in INFO.items()},
        'backends': shapes.items(_BACKEND, 'The backends.'),
        'placement': shapes.optional(
            _PLACEMENT, 'The state of the host in placement.'
        ),
        'policy': shapes.optional(
            POLICY,
            'How the agent uses its measurements. Schedulers and evaluations '
            'use the same values.',
        ),
        'finding_counts': shapes.optional(
            _FINDING_COUNTS,
            'How many findings the host has of each level, by those checks '
            'of ``vsched-agent doctor`` that the agent repeats; ``null`` when '
            'the agent does not report them.',
        ),
        'verification': shapes.optional(
            _VERIFICATION,
            'The last comparison of the reports with Nova and placement. '
            '``null`` before the first one, and always without ``[nova]`` '
            'and ``[placement]``.',
        ),
    },
    'Host',
)

DETAILED_HOST = shapes.closed(
    {
        **HOST['properties'],
        'findings': shapes.optional(
            shapes.items(
                _FINDING,
                'What limits the host, by those checks of ``vsched-agent '
                'doctor`` that the agent repeats; ``null`` when the agent '
                'does not report it.',
            )
        ),
    },
    'DetailedHost',
)

LIST = shapes.page('hosts', HOST)
SHOW = shapes.one('host', DETAILED_HOST)

_DIFFERENCE = shapes.closed(
    {
        'host': shapes.string('Name of the host.'),
        'kind': shapes.word(audits.Kind, 'The kind of difference.'),
        'detail': shapes.string('What differs.'),
        'consumer': shapes.optional(
            shapes.string(
                'UUID of an instance, or of a migration; ``null`` for the '
                'host itself.'
            )
        ),
        'provider_uuid': shapes.optional(
            shapes.string('The resource provider of the allocation.')
        ),
        'claimed_mcpu': shapes.optional(
            shapes.integer('What is claimed in placement.')
        ),
        'promised_mcpu': shapes.optional(
            shapes.integer('What is reserved, by the database.')
        ),
        'held_mcpu': shapes.optional(
            shapes.integer('What the kernel was last seen to hold.')
        ),
    },
    'HostDifference',
)

AUDIT = shapes.one(
    'audit',
    shapes.closed(
        {
            'host': shapes.string('Name of the host.'),
            'agrees': shapes.boolean('Whether there is no difference.'),
            'differences': shapes.items(_DIFFERENCE, 'All differences.'),
        },
        'HostAudit',
    ),
)

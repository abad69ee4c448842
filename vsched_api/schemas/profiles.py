# SPDX-License-Identifier: Apache-2.0

"""What requests about profiles may say, and what answers do."""

from vsched_api.schemas import fields
from vsched_api.schemas import shapes
from vsched_lib.contract import profiles
from vsched_lib.model import reservation


def _some(item: fields.Schema, most: int, text: str) -> fields.Schema:
    return {
        'type': 'array',
        'items': item,
        'minItems': 1,
        'maxItems': most,
        'uniqueItems': True,
        'description': text,
    }


_SOURCE: fields.Schema = {
    'type': 'string',
    'enum': list(map(str, profiles.ProfileSource)),
    'description': 'Only this source: ``benchmark``, runs that were ordered, '
    'or ``live``, reservations in use.',
}
_VERSION: fields.Schema = {
    'type': 'integer',
    'minimum': 1,
    'maximum': 2**63 - 1,
    'description': 'The newest of this version, not of all.',
}
_QUICK: fields.Schema = {
    'type': 'boolean',
    'description': 'A short run, whose bounds are wide.',
}

#: What is measured; the agent's defaults hold for what is not named.
CREATE = fields.closed(
    {
        'shares_pct': _some(
            {'type': 'number', 'minimum': 0.1, 'maximum': 100},
            64,
            'The reserved shares in percent of a CPU.',
        ),
        'backends': _some(
            fields.WANTED_BACKEND,
            len(reservation.Backend),
            'The backends; without it those that the host can use.',
        ),
        'periods_us': _some(
            {'type': 'integer', 'minimum': 1_000, 'maximum': 1_000_000},
            8,
            'The periods.',
        ),
        'seconds': {
            'type': 'integer',
            'minimum': 1,
            'maximum': 3600,
            'description': 'The windows of one second at each point; not '
            'with ``quick``.',
        },
        'contend': {
            'type': 'integer',
            'minimum': 0,
            'maximum': 256,
            'description': 'How many hogs outside of the reservation run in '
            'the contended part.',
        },
        'in_guest': {
            'type': 'boolean',
            'description': 'Whether the vCPU of a calibration VM has the '
            'share, not a thread.',
        },
        'quick': _QUICK,
    },
    title='ErrorProfileCreate',
)

CREATE_OVERHEAD = fields.closed(
    {'quick': _QUICK}, title='OverheadProfileCreate'
)

SHOW_QUERY = fields.closed(
    {
        'source': _SOURCE,
        'version': _VERSION,
        'format': {
            'type': 'string',
            'enum': ['json', 'csv'],
            'description': '``json``, or ``csv``: one profile as a table, of '
            'the ``source`` ``benchmark`` unless it is named.',
        },
    }
)

VERSIONS_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': fields.marker(fields.UUID, 'UUID of the profile'),
        'source': _SOURCE,
    }
)

_PROFILE = {
    'uuid': shapes.string('UUID of the profile.'),
    'host': shapes.string('The host.'),
    'source': shapes.word(
        profiles.ProfileSource,
        '``benchmark``: a run that was ordered. ``live``: reservations in '
        'use.',
    ),
    'version': shapes.integer(
        "Counts the host's profiles of one source, from 1, and from 1 again "
        'when its agent has lost its journal.'
    ),
    'started_at': shapes.time('When the measurement began.'),
    'finished_at': shapes.time('When it ended.'),
    'kernel': shapes.string('Release of the kernel.'),
    'tick_us': shapes.integer("The kernel's scheduler tick."),
    'cpus': shapes.integer('Number of CPUs.'),
    'load': shapes.number(
        'What ran meanwhile, as the load average of one minute.'
    ),
    'quick': shapes.boolean('A short run, whose bounds are wide.'),
    'complete': shapes.boolean('Whether every requested point was measured.'),
    'features': shapes.anything('With what it was measured, by name.'),
    'notes': shapes.items(
        {'type': 'string'}, 'What was not measured, and why.'
    ),
    'links': shapes.LINKS,
}

_BOUND = shapes.closed(
    {
        'confidence_pct': shapes.integer('The confidence.'),
        'lower_ppm': shapes.optional(
            shapes.integer('99 of 100 errors are not below this.')
        ),
        'size_ppm': shapes.optional(
            shapes.integer('99 of 100 errors are not larger than this.')
        ),
    },
    'ErrorBound',
)

_ERROR_POINT = shapes.closed(
    {
        **shapes.message(
            profiles.ErrorPoint,
            {
                'backend': 'The backend.',
                'period_us': 'The period.',
                'share_ppm': 'What was reserved, of a CPU.',
                'contenders': 'Hogs outside of the reservation meanwhile.',
                'probe': '``thread`` or ``vcpu``: what had the share.',
                'window_us': 'The length of one window.',
                'n': 'Number of windows.',
                'mean_ppm': 'The mean error.',
                'min_ppm': 'The lowest error.',
                'max_ppm': 'The highest error.',
                'quantiles_ppm': 'Quantiles of the error, at '
                '``quantile_parts_ppm``.',
                'abs_p50_ppm': 'The median of the size of the error.',
                'abs_p95_ppm': 'The 95th percentile of its size.',
                'abs_p99_ppm': 'The 99th percentile of its size.',
                'long_mean_ppm': 'The error over all windows together.',
                'counts': 'Windows in each bin between ``edges_ppm``; the '
                'first and the last bin are open.',
                'lowest_ppm': 'The lowest errors, rising.',
                'largest_ppm': 'The largest sizes, falling.',
            },
        ),
        'bounds': shapes.items(
            _BOUND,
            'Bounds by confidence; ``null`` when there are too few windows. '
            'Nothing is assumed about the distribution of errors.',
        ),
    },
    'ErrorPoint',
)

ERROR_PROFILE = shapes.closed(_PROFILE, 'ErrorProfile')
_ERROR_DETAILS = {
    'edges_ppm': shapes.items(
        {'type': 'integer'}, 'The edges of the bins of ``counts``.'
    ),
    'quantile_parts_ppm': shapes.items(
        {'type': 'integer'}, 'Which quantiles ``quantiles_ppm`` has.'
    ),
    'points': shapes.items(_ERROR_POINT, 'The measured points.'),
}

_PRICE = shapes.closed(
    shapes.message(
        profiles.OverheadPrice,
        {
            'term': 'A packet that the guest received (``net_rx``) or sent '
            '(``net_tx``), a request that its disk served (``disk_read``, '
            '``disk_write``), a time that a thread of the host began to run '
            'for it (``wakeups``), or a second in which nothing happens '
            '(``idle_s``).',
            'cost_ns': 'The CPU time that it costs.',
            'error_ns': 'The standard error; ``null`` when the observations '
            'do not distinguish the price from others.',
        },
    ),
    'OverheadPrice',
)

_OVERHEAD_POINT = shapes.closed(
    shapes.message(
        profiles.OverheadPoint,
        {
            'experiment': '``net-rx``, ``net-tx``, ``disk-read``, '
            '``disk-write`` or ``idle``.',
            'rate': 'Packets or blocks a second that were requested.',
            'burst': 'How many of them at once.',
            'size_bytes': 'Size of each.',
            'interval_us': 'Length of the measurement.',
            'net_rx': 'Packets that the guest received meanwhile.',
            'net_tx': 'Packets that it sent.',
            'disk_read': 'Reads that its disk completed.',
            'disk_write': 'Writes that its disk completed.',
            'wakeups': "How often the host's threads for it began to run.",
            'direct_us': 'CPU time that they used.',
            'shared_us': "Its part of the host's work that no thread owns.",
            'predicted_us': 'The cost of both by the prices.',
        },
    ),
    'OverheadPoint',
)

#: How well the prices of an overhead profile fit.
FIT = {
    'good': shapes.boolean(
        'Whether the prices explain the observations well enough to be used. '
        'Others are kept for inspection, and price nothing.'
    ),
    'r2': shapes.number("The part of the costs' variance that they explain."),
    'residual_ns': shapes.number('The root mean square of the residuals.'),
    'n': shapes.integer('Number of observations.'),
}

_OVERHEAD = {
    **_PROFILE,
    **FIT,
    'prices': shapes.items(_PRICE, 'What each event costs.'),
}
OVERHEAD_PROFILE = shapes.closed(_OVERHEAD, 'OverheadProfile')

SHOW = shapes.closed(
    {
        'error_profiles': shapes.items(
            shapes.closed(
                {**_PROFILE, **_ERROR_DETAILS}, 'DetailedErrorProfile'
            ),
            'The newest of each source.',
        )
    }
)
LIST = shapes.page('error_profiles', ERROR_PROFILE)
SHOW_OVERHEAD = shapes.closed(
    {
        'overhead_profiles': shapes.items(
            shapes.closed(
                {
                    **_OVERHEAD,
                    'points': shapes.items(
                        _OVERHEAD_POINT, 'The measured points.'
                    ),
                },
                'DetailedOverheadProfile',
            ),
            'The newest of each source.',
        )
    }
)
LIST_OVERHEAD = shapes.page('overhead_profiles', OVERHEAD_PROFILE)

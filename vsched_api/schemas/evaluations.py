# SPDX-License-Identifier: Apache-2.0

"""What requests for an evaluation may say, and what answers do."""

from vsched_api.operations import evaluations
from vsched_api.operations import hosts
from vsched_api.schemas import fields
from vsched_api.schemas import reservations
from vsched_api.schemas import shapes
from vsched_lib.contract import spec_values
from vsched_lib.model import fit

#: The most instances that one may ask about.
MOST = 1000

_TEXT: fields.Schema = {
    'type': 'string',
    'maxLength': spec_values.MAX_VALUE_CHARS,
}

OVERRIDE = fields.closed(
    dict(reservations.WANTED),
    minProperties=1,
    title='EvaluationOverride',
    description='What an operator would set over the flavor, as in ``POST`` '
    'and ``PATCH /v1/reservations``. Nothing is set.',
)

CREATE = fields.closed(
    {
        'extra_specs': {
            'type': 'object',
            'additionalProperties': _TEXT,
            'maxProperties': 200,
            'description': 'Those of a flavor, as text, those of other '
            'namespaces too.',
        },
        'vcpus': {
            'type': 'integer',
            'minimum': 1,
            'maximum': 1024,
            'description': 'Of the flavor; 1 when it is left out.',
        },
        'override': OVERRIDE,
        'demand_mcpu': {
            'type': 'integer',
            'minimum': 1,
            'maximum': 10**9,
            'description': 'Instead of the three: as much capacity, whatever '
            'it is for.',
        },
        'instances': {
            'type': 'integer',
            'minimum': 1,
            'maximum': MOST,
            'description': 'How many; 1 when it is left out.',
        },
        'hosts': {
            'type': 'array',
            'items': fields.NAME,
            'minItems': 1,
            'maxItems': 1000,
            'uniqueItems': True,
            'description': 'Names of hosts; only these. Otherwise all.',
        },
        'limit': fields.described(
            fields.LIMIT, 'How many hosts the answer has at most.'
        ),
    },
    title='EvaluationCreate',
)

_PROBLEM = shapes.closed(
    {
        'cause': shapes.word(
            fit.Cause,
            'What the host lacks; ``unreadable`` when its stored data cannot '
            'be read.',
        ),
        'detail': shapes.string('The figures, in one sentence for people.'),
        'unknown': shapes.boolean(
            'Whether it was not measured; what that means to a scheduler is '
            'up to its options.'
        ),
    },
    'EvaluationProblem',
)

#: The fields of a ``room.Verdict``.
VERDICT = {
    'fits': shapes.boolean('Whether one instance fits.'),
    'room': shapes.optional(
        shapes.integer(
            'How many instances fit; ``null`` when the flavor takes nothing '
            'of the capacity.'
        )
    ),
    'free_mcpu': shapes.integer(
        'What is left of the capacity; below 0 when it is overcommitted.'
    ),
    'capacity_mcpu': shapes.integer('What reservations may use in total.'),
}

#: Those of a ``fit.Need``.
NEED = {
    'backend': shapes.optional(
        shapes.string('The backend that would enforce it.')
    ),
    'demand_mcpu': shapes.integer(
        'What one instance takes of the capacity of this host.'
    ),
    'guest_mcpu': shapes.integer('The part of its vCPUs.'),
    'overhead_mcpu': shapes.optional(
        shapes.integer(
            "The part of the host's work on its I/O; ``null`` when the host "
            'was not measured.'
        )
    ),
    'margin_ppm': shapes.integer('The margin for measured errors.'),
}

HOST = shapes.closed(
    {
        'host': shapes.string('Name of the host.'),
        'state': shapes.word(hosts.State, 'Whether its agent reports.'),
        **VERDICT,
        'score': shapes.number(
            'The sum of the weights, each from 0 for the worst host to 1 for '
            'the best. They are those of the weighers for nova-scheduler '
            'with multipliers of 1; neighbours of the instance do not count.'
        ),
        'weights': shapes.closed(
            {
                name: shapes.optional(
                    shapes.number('Before it is normalised.')
                )
                for name in evaluations.WEIGHED
            },
            'EvaluationWeights',
            'What the score is made of.',
        ),
        **NEED,
        'measured_p99_lower_ppm': shapes.optional(
            shapes.integer(
                'The measured bound that 99 of 100 errors are not below.'
            )
        ),
        'problems': shapes.items(_PROBLEM, 'All reasons against the host.'),
    },
    'EvaluatedHost',
)

EVALUATION = shapes.one(
    'evaluation',
    shapes.closed(
        {
            'instances': shapes.integer('How many were asked for.'),
            'hosts_total': shapes.integer('How many hosts were evaluated.'),
            'hosts_fit': shapes.integer('On how many one instance fits.'),
            'room': shapes.optional(
                shapes.integer(
                    'How many instances fit on all hosts; ``null`` when the '
                    'flavor takes nothing of their capacity.'
                )
            ),
            'all_fit': shapes.boolean(
                'Whether each of the instances has a place.'
            ),
            'placed': shapes.items(
                shapes.closed(
                    {
                        'host': shapes.string('Name of the host.'),
                        'instances': shapes.integer('How many it gets.'),
                    },
                    'EvaluationPlace',
                ),
                'Which hosts get how many, if each instance goes to the best '
                'host by then; none goes to a host whose agent does not '
                'report.',
            ),
            'hosts': shapes.items(
                HOST, 'The hosts: those that fit first, the best first.'
            ),
        },
        'Evaluation',
    ),
)

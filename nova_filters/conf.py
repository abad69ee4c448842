# SPDX-License-Identifier: Apache-2.0

"""Options of the filters and weighers: ``[vsched]`` in nova.conf.

Nova makes its filters without giving them its options, so this is the one
place that uses the process-wide ones.
"""

import copy

from keystoneauth1 import loading
from oslo_config import cfg

GROUP = cfg.OptGroup(
    'vsched',
    title='vsched',
    help='Access of nova-scheduler to the vsched service, and its filters and '
    'weighers. Without keystone set auth_type = none and endpoint_override.',
)

_POLICIES = [
    (
        'pass',
        'The host may be used; its agent still refuses what '
        'it cannot enforce.',
    ),
    ('fail', 'The host is not used.'),
]


def _policy(name: str, default: str, text: str) -> cfg.Opt:
    return cfg.StrOpt(name, default=default, choices=_POLICIES, help=text)


_STALE = (
    'Whether %s passes all hosts when the last answer of the service is older '
    'than max_age, and a host whose agent does not report.'
)

OPTS: list[cfg.Opt] = [
    cfg.FloatOpt(
        'refresh_interval',
        default=2.0,
        min=0.1,
        max=600,
        help='Seconds between two requests for changed hosts. A separate '
        'thread sends them; scheduling requests do not wait for them.',
    ),
    cfg.FloatOpt(
        'max_age',
        default=60.0,
        min=1,
        help='Seconds after which the last answer of the service counts as '
        'stale.',
    ),
    _policy('reservation_stale', 'pass', _STALE % 'VschedReservationFilter'),
    _policy(
        'reservation_missing',
        'fail',
        'Whether VschedReservationFilter passes a host that has no agent '
        'when the flavor has a reservation.',
    ),
    _policy(
        'allocation_error_stale',
        'pass',
        _STALE % 'VschedAllocationErrorFilter',
    ),
    _policy(
        'allocation_error_missing',
        'fail',
        'Whether VschedAllocationErrorFilter passes a host that has no '
        'agent, or has not measured its errors, when the flavor has a '
        'bound. The agent refuses a bound without a measurement.',
    ),
    _policy('io_overhead_stale', 'pass', _STALE % 'VschedIoOverheadFilter'),
    _policy(
        'io_overhead_missing',
        'pass',
        'Whether VschedIoOverheadFilter passes a host that has no agent, '
        'or has not measured what I/O costs, when the flavor has its '
        'I/O charged or overprovisioned.',
    ),
    cfg.FloatOpt(
        'headroom_weight_multiplier',
        default=1.0,
        help='Weight of the CPU time of a host that is not reserved. A value '
        'below 0 stacks instances. The metadata '
        "vsched_headroom_weight_multiplier of a host's aggregate takes "
        'precedence; likewise for the next options.',
    ),
    cfg.FloatOpt(
        'allocation_error_weight_multiplier',
        default=1.0,
        help='Weight of small allocation errors of the host.',
    ),
    cfg.FloatOpt(
        'io_overhead_weight_multiplier',
        default=1.0,
        help="Weight of a low CPU cost of the flavor's I/O on the host.",
    ),
    cfg.FloatOpt(
        'interference_weight_multiplier',
        default=1.0,
        help='Weight of a low mutual slowdown of an instance and its '
        'neighbours, by their workload classes.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Add the group and its options to ``conf``."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP.name)
    loading.register_auth_conf_options(conf, GROUP.name)
    loading.register_session_conf_options(conf, GROUP.name)
    loading.register_adapter_conf_options(
        conf, GROUP.name, include_deprecated=False
    )
    conf.set_default('service_type', 'vsched', group=GROUP.name)
    # Only the thread that updates the snapshot waits.
    conf.set_default('timeout', 10, group=GROUP.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [
        (
            GROUP,
            [
                *OPTS,
                *loading.get_auth_common_conf_options(),
                *loading.get_auth_plugin_conf_options('password'),
                *loading.get_session_conf_options(),
                *loading.get_adapter_conf_options(include_deprecated=False),
            ],
        )
    ]

# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Options of the filters and weighers: ``[vsched]`` in nova.conf.

Nova makes its filters without giving them its options, so this is the one
place that uses the process-wide ones.
"""

import copy

from keystoneauth1 import loading
from oslo_config import cfg

GROUP = cfg.OptGroup(
    'vsched', title='vsched',
    help='How nova-scheduler learns what vsched measured, and what it makes '
         'of that. Without keystone set auth_type = none and '
         'endpoint_override.')

_POLICIES = [('pass', 'The host may be used; its agent still says no to '
                      'what it can not hold.'),
             ('fail', 'The host is not used.')]


def _policy(name: str, default: str, text: str) -> cfg.Opt:
    return cfg.StrOpt(name, default=default, choices=_POLICIES, help=text)


_STALE = ('What %s makes of every host while the service has not been '
          'reached for max_age, and of a host whose agent does not report.')

OPTS: list[cfg.Opt] = [
    cfg.FloatOpt(
        'refresh_interval',
        default=2.0, min=0.1, max=600,
        help='Seconds between two looks at what has changed. They are made '
             'by a thread of their own; no request waits for one.'),
    cfg.FloatOpt(
        'max_age',
        default=60.0, min=1,
        help='What was last heard of the service counts as stale when it is '
             'older, in seconds.'),
    _policy('reservation_stale', 'pass',
            _STALE % 'VschedReservationFilter'),
    _policy('reservation_missing', 'fail',
            'What VschedReservationFilter makes of a host that has no agent '
            'where the flavor has a reservation.'),
    _policy('allocation_error_stale', 'pass',
            _STALE % 'VschedAllocationErrorFilter'),
    _policy('allocation_error_missing', 'fail',
            'What VschedAllocationErrorFilter makes of a host that has no '
            'agent, or has not measured its errors, where the flavor has a '
            'bound. An agent refuses what it has no measurement for.'),
    _policy('io_overhead_stale', 'pass', _STALE % 'VschedIoOverheadFilter'),
    _policy('io_overhead_missing', 'pass',
            'What VschedIoOverheadFilter makes of a host that has no agent, '
            'or has not measured what I/O costs, where the flavor has its '
            'I/O charged or provided for.'),
    cfg.FloatOpt(
        'headroom_weight_multiplier', default=1.0,
        help='How much it counts that a host has CPU time left to promise. '
             'Below 0 instances are stacked. The metadata '
             'vsched_headroom_weight_multiplier of a host\'s aggregate goes '
             'before it; likewise with the next ones.'),
    cfg.FloatOpt(
        'allocation_error_weight_multiplier', default=1.0,
        help='How much it counts that a host gives what it promises.'),
    cfg.FloatOpt(
        'io_overhead_weight_multiplier', default=1.0,
        help='How much it counts that a host does the flavor\'s I/O with '
             'little CPU time.'),
    cfg.FloatOpt(
        'interference_weight_multiplier', default=1.0,
        help='How much it counts that an instance and its neighbours are of '
             'workload classes that do not disturb each other.'),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Add the group and its options to ``conf``."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP.name)
    loading.register_auth_conf_options(conf, GROUP.name)
    loading.register_session_conf_options(conf, GROUP.name)
    loading.register_adapter_conf_options(
        conf, GROUP.name, include_deprecated=False)
    conf.set_default('service_type', 'vsched', group=GROUP.name)
    # The one who waits is a thread that has nothing else to do.
    conf.set_default('timeout', 10, group=GROUP.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group with its options, for oslo-config-generator."""
    return [(GROUP, [
        *OPTS, *loading.get_auth_common_conf_options(),
        *loading.get_auth_plugin_conf_options('password'),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(include_deprecated=False)])]

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

"""Options of enforcement."""

import copy

from oslo_config import cfg
from oslo_config import types

from vsched_lib.model import reservation

enforcement_group = cfg.OptGroup(
    'enforcement',
    title='Enforcement',
    help='How reservations are put in force on this compute node.')

enforcement_opts: list[cfg.Opt] = [
    cfg.ListOpt(
        'backends',
        default=[str(reservation.Backend.DEADLINE),
                 str(reservation.Backend.CFS)],
        item_type=types.String(choices=[
            (str(reservation.Backend.DEADLINE),
             'SCHED_DEADLINE: a guarantee, and a cap unless the mode is '
             'work_conserving'),
            (str(reservation.Backend.CFS),
             'cgroup CPU bandwidth: a cap, no guarantee')]),
        help='The backends this compute node may use, the preferred one '
             'first. A reservation that names no backend gets the first.'),
    cfg.FloatOpt(
        'max_overhead_pct',
        default=50.0, min=0, max=100,
        help='The largest part of a reservation that may go to this host\'s '
             'work on its I/O, in percent, where io_charging is charge. At '
             'the rates that its flavor announces; what would take more is '
             'refused, and placed elsewhere.'),
    cfg.StrOpt(
        'unpriced_io',
        default='ignore',
        choices=[('ignore', 'taken to cost nothing, with an event'),
                 ('refuse', 'the reservation is refused')],
        help='What is made of the packets and requests a second that a '
             'flavor announces while this host has no overhead profile '
             'that can be used.'),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Make the options known to one set of options."""
    conf.register_group(copy.deepcopy(enforcement_group))
    conf.register_opts(enforcement_opts, group=enforcement_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The options, for the generated sample."""
    return [(enforcement_group, enforcement_opts)]

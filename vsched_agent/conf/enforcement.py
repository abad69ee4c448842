# SPDX-License-Identifier: Apache-2.0

"""Options of enforcement."""

import copy

from oslo_config import cfg
from oslo_config import types

from vsched_lib.model import reservation

#: The kernel's least period (kernel.sched_deadline_period_min_us), and one
#: that no tick is longer than.
LEAST_CHECK_US, MOST_CHECK_US = 100, 10_000


class CheckInterval(types.Integer):
    """Microseconds until a budget is looked at, or 0 for never."""

    def __init__(self) -> None:
        super().__init__(0, MOST_CHECK_US)

    def __call__(self, value: object) -> int | float | None:
        """Read the option's value.

        :raises ValueError: when it is out of range.
        """
        found = super().__call__(value)
        if found and found < LEAST_CHECK_US:
            raise ValueError(
                'should be 0 (off) or at least %d: the kernel schedules '
                'nothing more often (kernel.sched_deadline_period_min_us)'
                % LEAST_CHECK_US
            )
        return found


enforcement_group = cfg.OptGroup(
    'enforcement',
    title='Enforcement',
    help='How reservations are put in force on this compute node.',
)

enforcement_opts: list[cfg.Opt] = [
    cfg.ListOpt(
        'backends',
        default=[
            str(reservation.Backend.DEADLINE),
            str(reservation.Backend.CFS),
        ],
        item_type=types.String(
            choices=[
                (
                    str(reservation.Backend.DEADLINE),
                    'SCHED_DEADLINE: a guarantee, and a cap unless the mode '
                    'is '
                    'work_conserving',
                ),
                (
                    str(reservation.Backend.CFS),
                    'cgroup CPU bandwidth: a cap, no guarantee',
                ),
            ]
        ),
        help='The backends this compute node may use, the preferred one '
        'first. A reservation that names no backend gets the first.',
    ),
    cfg.Opt(
        'budget_check_us',
        type=CheckInterval(),
        default=0,
        help='Has a helper look at the budgets of backend deadline when '
        "they are used up, rather than leave them to the kernel's "
        'tick. It makes small shares exact where the kernel has no '
        'HRTICK_DL. So many microseconds, 100 to 10000, may go by until '
        'a budget that is used up is looked at where the kernel does '
        "not tell when that is; it is half the period of the helper's "
        'own reservation. 0 leaves all budgets to the tick. It costs 50 '
        'mcpu for each CPU at the most, but 100 at least and never more '
        'than 500, whatever the interval, which is reported as part of '
        "the host's reserve and promised to nobody. Error profiles "
        'made with another value do not count any more. Pinned vCPUs '
        'are left to the tick.',
    ),
    cfg.BoolOpt(
        'use_idle_time',
        default=True,
        help='Gives CPU time that nobody wants to instances of mode '
        'work_conserving, beyond what they reserve. A helper samples '
        'the number of runnable threads of the host every 10 to 20 ms, '
        'lets these instances reclaim bandwidth after CPUs have been '
        'idle for 0.3 s, and stops that when ordinary threads wait. It '
        'reserves 20 mcpu for its own thread, which are part of the '
        "host's reserve. Without it, or where that reservation is "
        'refused, the mode work_conserving is enforced like capped. '
        'Pinned vCPUs get no idle time.',
    ),
    cfg.FloatOpt(
        'max_overhead_pct',
        default=50.0,
        min=0,
        max=100,
        help="The largest part of a reservation that may go to this host's "
        'work on its I/O, in percent, where io_charging is charge. At '
        'the rates that its flavor announces; what would take more is '
        'refused, and placed elsewhere.',
    ),
    cfg.StrOpt(
        'unpriced_io',
        default='ignore',
        choices=[
            ('ignore', 'taken to cost nothing, with an event'),
            ('refuse', 'the reservation is refused'),
        ],
        help='What is made of the packets and requests a second that a '
        'flavor announces while this host has no overhead profile '
        'that can be used.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Make the options known to one set of options."""
    conf.register_group(copy.deepcopy(enforcement_group))
    conf.register_opts(enforcement_opts, group=enforcement_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The options, for the generated sample."""
    return [(enforcement_group, enforcement_opts)]

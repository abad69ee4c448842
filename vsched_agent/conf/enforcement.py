# SPDX-License-Identifier: Apache-2.0

"""Options of [enforcement]."""

import copy

from oslo_config import cfg
from oslo_config import types

from vsched_agent.host import cpu_list
from vsched_lib.model import reservation

#: The kernel's minimum period (kernel.sched_deadline_period_min_us), and an
#: upper limit that is no shorter than any kernel's tick.
LEAST_CHECK_US, MOST_CHECK_US = 100, 10_000


class CheckInterval(types.Integer):
    """Microseconds between two checks of a budget, or 0 for none."""

    def __init__(self) -> None:
        super().__init__(0, MOST_CHECK_US)

    def __call__(self, value: object) -> int | float | None:
        """Parse the value.

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


class CpuList(types.String):
    """A list of CPUs such as 0-3,8."""

    def __call__(self, value: object) -> str:
        """Check the list.

        :raises ValueError: when it is none.
        """
        text = str(super().__call__(value))
        cpu_list.parse(text)
        return text


enforcement_group = cfg.OptGroup(
    'enforcement',
    title='Enforcement',
    help='Enforcement of reservations on this compute node.',
)

enforcement_opts: list[cfg.Opt] = [
    cfg.ListOpt(
        'backends',
        default=[
            str(reservation.Backend.DEADLINE),
            str(reservation.Backend.CFS),
            str(reservation.Backend.RTDS),
            str(reservation.Backend.CREDIT2),
            str(reservation.Backend.CREDIT),
        ],
        item_type=types.String(
            choices=[
                (
                    str(reservation.Backend.DEADLINE),
                    'SCHED_DEADLINE: a guarantee, and a cap unless the mode '
                    'is work_conserving',
                ),
                (
                    str(reservation.Backend.CFS),
                    'cgroup CPU bandwidth: a cap, no guarantee',
                ),
                (
                    str(reservation.Backend.RTDS),
                    "Xen's scheduler RTDS: a guarantee, and a cap unless the "
                    'mode is work_conserving',
                ),
                (
                    str(reservation.Backend.CREDIT2),
                    "weight and cap of Xen's scheduler Credit2: a share over "
                    'some time, in no period',
                ),
                (
                    str(reservation.Backend.CREDIT),
                    "likewise of Xen's scheduler Credit",
                ),
            ]
        ),
        help='Backends that this compute node may use, in the order of '
        'preference. A reservation that names no backend gets the first. '
        'Hosts of Xen use rtds, credit2 and credit only, whichever the '
        'hypervisor runs, and all others do not use them.',
    ),
    cfg.Opt(
        'budget_check_us',
        type=CheckInterval(),
        default=0,
        help='Interval, in microseconds, at which a helper checks exhausted '
        'budgets of backend deadline, 100 to 10000; 0 leaves them to '
        "the kernel's tick. The helper makes small shares exact on "
        'kernels without HRTICK_DL. The interval applies where the '
        'kernel does not report the time at which a budget is '
        "exhausted; it is half the period of the helper's own "
        'reservation. The helper reserves up to 50 mcpu for each CPU, '
        'at least 100 and at most 500 mcpu in total, whatever the '
        "interval. This is reported as part of the host's reserve and "
        'is not available to reservations. Error profiles that were '
        'measured with another value become invalid. The budgets of '
        'pinned vCPUs are always left to the tick.',
    ),
    cfg.BoolOpt(
        'use_idle_time',
        default=True,
        help='Give idle CPU time to instances of mode work_conserving, '
        'beyond their reservations. A helper samples the number of '
        'runnable threads of the host every 10 to 20 ms. It lets these '
        'instances reclaim bandwidth after CPUs have been idle for 0.3 '
        's, and stops that when ordinary threads wait. Its own thread '
        "reserves 20 mcpu, which are part of the host's reserve. When "
        'this is false, or the kernel refuses that reservation, the '
        'mode work_conserving is enforced like capped. Pinned vCPUs get '
        'no idle time.',
    ),
    cfg.Opt(
        'partition_cpus',
        type=CpuList(),
        default='',
        sample_default='2-7',
        help='CPUs that vsched may take out of the scheduling of all others '
        'for pinned vCPUs of backend deadline, such as 2-7; none by default. '
        'A vCPU that is pinned to exactly one of these CPUs gets it as a '
        'cpuset partition: nothing else runs on this CPU while the '
        'reservation is in force, no matter how small it is, and the kernel '
        "admits the CPU's bandwidth separately. An instance with pinned "
        'vCPUs is refused when another one has such a CPU. This needs cgroup '
        'v2 and Linux 6.7. Otherwise, and on other CPUs, pinned vCPUs are '
        'confined by their cpusets, and several instances may share a CPU.',
    ),
    cfg.FloatOpt(
        'max_overhead_pct',
        default=50.0,
        min=0,
        max=100,
        help="Maximum percentage of a reservation that the host's work for "
        'its I/O may use with io_charging=charge, at the I/O rates that '
        'the flavor announces. An instance that would need more is '
        'refused and must be placed on another host.',
    ),
    cfg.StrOpt(
        'unpriced_io',
        default='ignore',
        choices=[
            ('ignore', 'no cost, with an event'),
            ('refuse', 'the reservation is refused'),
        ],
        help='Cost of the packets and requests per second that a flavor '
        'announces while this host has no valid overhead profile.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(enforcement_group))
    conf.register_opts(enforcement_opts, group=enforcement_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [(enforcement_group, enforcement_opts)]

# SPDX-License-Identifier: Apache-2.0

"""Properties and settings of the running kernel."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import glob
import gzip
import math
import os
import time
import types
import typing as ty

from vsched_agent.host import cgroup
from vsched_agent.host import cpu_list

#: The fair server, since Linux 6.12, reserves a share of each CPU for ordinary
#: threads, by default 50 ms in each second; admission control subtracts it.
FAIR_SERVER_SINCE = (6, 12)
FAIR_SERVER_RUNTIME_NS = 50_000_000
FAIR_SERVER_PERIOD_NS = 1_000_000_000

#: clock_gettime(2): advances at ticks, so its resolution is the tick; Python
#: has no constant for it.
_CLOCK_MONOTONIC_COARSE = 6

_PERF_EVENT_PARANOID = 'proc/sys/kernel/perf_event_paranoid'


@dataclasses.dataclass(frozen=True, slots=True)
class KernelFacts:
    """Properties that rarely change while the kernel runs.

    :param release: as printed by ``uname -r``.
    :param boot_id: differs after every boot.
    :param tick_us: the scheduler's tick.
    :param rt_period_us: sysctl kernel.sched_rt_period_us.
    :param rt_runtime_us: sysctl kernel.sched_rt_runtime_us, -1 for no
        bound.
    :param dl_period_min_us: shortest period that SCHED_DEADLINE accepts.
    :param dl_period_max_us: longest one.
    :param fair_servers: by CPU, (runtime, period) in nanoseconds reserved for
        ordinary threads; empty before Linux 6.12.
    :param options: relevant build options, to ``y``, a value, or ``n``; empty
        when unknown.
    :param online: CPUs online.
    :param hrtick_dl: whether budgets expire by a timer and not at the next
        tick; None when unknown.
    :param irq_time: whether interrupt time is accounted separately from the
        interrupted threads.
    :param perf_event_paranoid: sysctl kernel.perf_event_paranoid; None when
        the kernel has no perf events.
    """

    release: str
    boot_id: str
    tick_us: int
    rt_period_us: int
    rt_runtime_us: int
    dl_period_min_us: int
    dl_period_max_us: int
    fair_servers: Mapping[int, tuple[int, int]]
    options: Mapping[str, str]
    online: frozenset[int]
    hrtick_dl: bool | None = None
    irq_time: bool = False
    perf_event_paranoid: int | None = None

    @classmethod
    def read(cls, root: str = '/') -> 'KernelFacts':
        """Read the running kernel's properties.

        :param root: root of the file system; tests use their own.
        """
        release = _text(root, 'proc/sys/kernel/osrelease', os.uname().release)
        online = cpu_list.online(root)
        options = _options(root, release)
        return cls(
            release=release,
            boot_id=boot_id(root),
            tick_us=tick_us(),
            rt_period_us=_number(
                root, 'proc/sys/kernel/sched_rt_period_us', 1_000_000
            ),
            rt_runtime_us=_number(
                root, 'proc/sys/kernel/sched_rt_runtime_us', 950_000
            ),
            dl_period_min_us=_number(
                root, 'proc/sys/kernel/sched_deadline_period_min_us', 100
            ),
            dl_period_max_us=_number(
                root, 'proc/sys/kernel/sched_deadline_period_max_us', 1 << 22
            ),
            fair_servers=types.MappingProxyType(
                dict(_fair_servers(root, release, online))
            ),
            options=types.MappingProxyType(options),
            online=online,
            hrtick_dl=_hrtick_dl(root),
            # The kernel command line may disable it (tsc=noirqtime).
            irq_time=options.get('IRQ_TIME_ACCOUNTING') == 'y'
            and 'noirqtime' not in _text(root, 'proc/cmdline', ''),
            perf_event_paranoid=_optional(root, _PERF_EVENT_PARANOID),
        )

    def refreshed(self, root: str = '/') -> 'KernelFacts':
        """Return them with some settings read again, at any time.

        Not the bounds of SCHED_DEADLINE: reading them makes kernels since
        Linux 6.15 recompute its sums, which hides leaks and miscounts threads
        that are leaving.

        :param root: root of the file system; tests use their own.
        """
        return dataclasses.replace(
            self,
            hrtick_dl=_hrtick_dl(root),
            perf_event_paranoid=_optional(root, _PERF_EVENT_PARANOID),
        )

    @property
    def expected_units(self) -> int | None:
        """Bandwidth that the kernel admits when none is leaked.

        ``__dl_overflow()`` of kernel/sched/deadline.c: CPUs times the bound of
        the sysctls, less the fair servers.

        :returns: 2**-20 CPU, None when the kernel sets no bound.
        """
        if self.rt_runtime_us < 0:
            return None
        each = (self.rt_runtime_us << 20) // self.rt_period_us
        return each * len(self.online) - self.fair_units

    @property
    def fair_units(self) -> int:
        """Bandwidth of the fair servers, in 2**-20 CPU."""
        return sum(
            (runtime << 20) // period
            for runtime, period in self.fair_servers.values()
            if period
        )

    @property
    def least_runtime_us(self) -> Mapping[int, int]:
        """Shortest runtime by period whose worst debt is a second.

        See ``Reservation.worst_debt_us``: an overrun of one tick is repaid
        at the rate of the reservation.
        """
        return {
            period_us: min(
                self.tick_us, math.ceil(self.tick_us * period_us / 1_000_000)
            )
            for period_us in (5_000, 10_000, 20_000, 50_000, 100_000)
        }


def tick_us() -> int:
    """Return the scheduler's tick in microseconds."""
    return round(time.clock_getres(_CLOCK_MONOTONIC_COARSE) * 1_000_000)


def boot_id(root: str = '/') -> str:
    """Return what differs after every boot; empty if it is not known.

    :param root: root of the file system; tests use their own.
    """
    return _text(root, 'proc/sys/kernel/random/boot_id', '')


def _text(root: str, path: str, default: str) -> str:
    try:
        return cgroup.read_text(os.path.join(root, path))
    except FileNotFoundError:
        return default


def _number(root: str, path: str, default: int) -> int:
    return int(_text(root, path, str(default)))


def _optional(root: str, path: str) -> int | None:
    text = _text(root, path, '')
    return int(text) if text else None


def _hrtick_dl(root: str) -> bool | None:
    try:
        features = cgroup.read_text(
            os.path.join(root, 'sys/kernel/debug/sched/features')
        ).split()
    except OSError:
        return None
    return 'HRTICK_DL' in features


def _version(release: str) -> tuple[int, int]:
    digits = [
        ''.join(character for character in part if character.isdigit())
        for part in release.split('.')[:2]
    ]
    major, minor = [*digits, '0', '0'][:2]
    return int(major or 0), int(minor or 0)


def _fair_servers(
    root: str, release: str, online: frozenset[int]
) -> Iterator[tuple[int, tuple[int, int]]]:
    if _version(release) < FAIR_SERVER_SINCE:
        return
    for cpu in sorted(online):
        folder = 'sys/kernel/debug/sched/fair_server/cpu%d' % cpu
        values = []
        for name, default in (
            ('runtime', FAIR_SERVER_RUNTIME_NS),
            ('period', FAIR_SERVER_PERIOD_NS),
        ):
            try:
                values.append(
                    _number(root, os.path.join(folder, name), default)
                )
            except PermissionError:
                values.append(default)
        yield cpu, (values[0], values[1])


#: The build options that vsched reads.
_ASKED = (
    'CFS_BANDWIDTH',
    'CPUSETS',
    'HZ',
    'IRQ_TIME_ACCOUNTING',
    'NO_HZ_FULL',
    'PREEMPT_RT',
    'RT_GROUP_SCHED',
    'SCHED_HRTICK',
)


def _options(root: str, release: str) -> dict[str, str]:
    for text in _configs(root, release):
        found = dict.fromkeys(_ASKED, 'n')
        for line in text:
            name, _, value = line.strip().partition('=')
            name = name.removeprefix('CONFIG_')
            if name in found:
                found[name] = value
        return found
    return {}


def _configs(root: str, release: str) -> Iterator[ty.Iterable[str]]:
    path = os.path.join(root, 'proc/config.gz')
    if os.access(path, os.R_OK):
        with gzip.open(path, 'rt') as packed:
            yield packed
    for pattern in ('boot/config-%s', 'lib/modules/%s/config'):
        for path in glob.glob(
            os.path.join(root, pattern % glob.escape(release))
        ):
            if os.access(path, os.R_OK):
                with open(path) as plain:
                    yield plain

# SPDX-License-Identifier: Apache-2.0

"""Measures the time of all CPUs of the host between two passes.

Idle time is exact where the kernel stops its tick on idle CPUs (NO_HZ).
Time that is neither idle nor stolen by a hypervisor below is busy. Busy time
that is no instance's is the host's own.
"""

from collections.abc import Mapping
import dataclasses
import os
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.accounting import base
from vsched_agent.accounting import shared
from vsched_agent.accounting import wall_clock
from vsched_lib.contract import messages

LOG = logging.getLogger(__name__)

#: proc_stat(5): fields of a line, after its name.
_IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _STEAL = 3, 4, 5, 6, 7
#: Largest difference for each CPU between clocks that are not read at the
#: same moment: some ticks. More than that is not corrected later.
_OWED_US = 100_000


@dataclasses.dataclass(frozen=True, slots=True)
class CpuTime:
    """Time of all CPUs in one interval.

    :param at: end of the interval.
    :param interval_us: its measured length.
    :param cpus: number of those that were online all the time.
    :param steal_us: taken by a hypervisor below.
    :param irq_us: in interrupts; 0 when the kernel does not count them.
    :param busy_us: all other time, interrupts included.
    """

    at: float
    interval_us: int
    cpus: int
    idle_us: int
    steal_us: int
    irq_us: int
    busy_us: int


class HostMeter(base.CpuMeter):
    """Reads the host's CPU time once a pass.

    Used by one thread at a time.

    :param proc: where procfs is.
    :param irq_time: whether the kernel counts interrupts separately. If
        not, its figures for them are sampled by the tick.
    """

    def __init__(self, proc: str = '/proc', irq_time: bool = False) -> None:
        self._path = os.path.join(proc, 'stat')
        self._irq_time = irq_time
        self._us_per_tick = 1_000_000 // os.sysconf('SC_CLK_TCK')
        self._last: tuple[int, dict[str, list[int]]] | None = None
        self._owed_us = 0

    def read(self) -> CpuTime | None:
        """Return the CPUs' time since the last call.

        CPUs that went online or offline in between are left out.

        :returns: None at the first call, and when reading fails.
        """
        now_ns = time.monotonic_ns()
        try:
            now = self._read()
        except (OSError, ValueError) as problem:
            LOG.error('%s: %s', self._path, problem)
            return None
        last, self._last = self._last, (now_ns, now)
        if last is None:
            return None
        interval_us = (now_ns - last[0]) // 1000
        both = last[1].keys() & now.keys()
        grown = [
            sum(max(0, now[cpu][field] - last[1][cpu][field]) for cpu in both)
            * self._us_per_tick
            for field in range(_STEAL + 1)
        ]
        idle_us = grown[_IDLE] + grown[_IOWAIT]
        return CpuTime(
            at=wall_clock.seconds(now_ns, wall_clock.offset_ns()),
            interval_us=interval_us,
            cpus=len(both),
            idle_us=idle_us,
            steal_us=grown[_STEAL],
            irq_us=grown[_IRQ] + grown[_SOFTIRQ] if self._irq_time else 0,
            busy_us=len(both) * interval_us - idle_us - grown[_STEAL],
        )

    def checkpoint(self) -> dict[str, ty.Any] | None:
        """Return the counters of the last call, as JSON types."""
        if self._last is None:
            return None
        return {
            'read_ns': self._last[0],
            'cpus': self._last[1],
            'owed_us': self._owed_us,
        }

    def resume(self, checkpoint: Mapping[str, ty.Any] | None) -> None:
        """Continue from what :meth:`checkpoint` returned.

        :raises ValueError, TypeError, LookupError: when it is malformed.
        """
        if checkpoint is None:
            return
        cpus = {
            str(cpu): [int(field) for field in fields]
            for cpu, fields in checkpoint['cpus'].items()
        }
        if any(len(fields) <= _STEAL for fields in cpus.values()):
            raise ValueError('too few fields of a CPU')
        self._last = int(checkpoint['read_ns']), cpus
        self._owed_us = int(checkpoint['owed_us'])

    def account(
        self, total: CpuTime, samples: list[messages.UsageSample]
    ) -> messages.HostUsage:
        """Divide the CPUs' time among instances and the host.

        The clocks are not read at the same moment: when instances seem to
        have used more than all CPUs, the next interval corrects it.

        :param total: the interval that the samples are of.
        :param samples: each is given its share of the host's work.
        """
        guest_us = sum(one.guest_us for one in samples)
        direct_us = sum(one.direct_us for one in samples)
        left_us = total.busy_us - guest_us - direct_us - self._owed_us
        self._owed_us = min(max(0, -left_us), total.cpus * _OWED_US)
        own_us = max(0, left_us)
        shares_us = shared.shares_us(
            samples,
            min(own_us, total.irq_us) if self._irq_time else own_us,
            self._irq_time,
        )
        for place, share_us in enumerate(shares_us):
            if share_us:
                samples[place] = dataclasses.replace(
                    samples[place], shared_us=share_us
                )
        return messages.HostUsage(
            at=total.at,
            interval_us=total.interval_us,
            cpus=total.cpus,
            idle_us=total.idle_us,
            steal_us=total.steal_us,
            irq_us=total.irq_us,
            guest_us=guest_us,
            direct_us=direct_us,
            shared_us=sum(shares_us),
            own_us=own_us - sum(shares_us),
        )

    def _read(self) -> dict[str, list[int]]:
        found = {}
        with open(self._path, encoding='ascii') as file:
            for line in file:
                name, _, rest = line.partition(' ')
                if name.startswith('cpu') and name != 'cpu':
                    fields = [int(text) for text in rest.split()]
                    if len(fields) <= _STEAL:
                        raise ValueError('%s: too few fields' % name)
                    found[name] = fields
        return found

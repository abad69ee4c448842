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

"""What all CPUs of the host did between two passes.

Idle time is exact where the kernel stops its tick on idle CPUs (NO_HZ); what
was neither idle nor stolen by the hypervisor below was busy. What was busy
and no instance's was the host's own.
"""

import dataclasses
import os
import time

from oslo_log import log as logging

from vsched_agent.accounting import shared
from vsched_lib.contract import messages

LOG = logging.getLogger(__name__)

#: proc_stat(5): fields of a line, after its name.
_IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _STEAL = 3, 4, 5, 6, 7
#: What clocks that are read one after the other may differ by, for each
#: CPU: some ticks. More than that is not made up for later.
_OWED_US = 100_000


@dataclasses.dataclass(frozen=True, slots=True)
class CpuTime:
    """What all CPUs did in one interval.

    :param at: end of the interval.
    :param interval_us: its measured length.
    :param cpus: that were online all the time.
    :param idle_us: nobody wanted them.
    :param steal_us: taken by the hypervisor below, where there is one.
    :param irq_us: in interrupts; 0 when the kernel does not tell.
    :param busy_us: all the rest, interrupts too.
    """

    at: float
    interval_us: int
    cpus: int
    idle_us: int
    steal_us: int
    irq_us: int
    busy_us: int


class HostMeter:
    """Reads the host's CPU time once a pass.

    Used by one thread at a time.

    :param proc: where procfs is.
    :param irq_time: whether the kernel keeps interrupts' time apart. Where
        it does not, its figures for them are samples by the tick.
    """

    def __init__(self, proc: str = '/proc', irq_time: bool = False) -> None:
        self._path = os.path.join(proc, 'stat')
        self._irq_time = irq_time
        self._us_per_tick = 1_000_000 // os.sysconf('SC_CLK_TCK')
        self._last: tuple[int, dict[str, list[int]]] | None = None
        self._owed_us = 0

    def read(self) -> CpuTime | None:
        """What the CPUs did since the last call.

        CPUs that came or went in between are left out of that interval.

        :returns: None at the first call, and when there is nothing to read.
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
        grown = [sum(max(0, now[cpu][field] - last[1][cpu][field])
                     for cpu in both) * self._us_per_tick
                 for field in range(_STEAL + 1)]
        idle_us = grown[_IDLE] + grown[_IOWAIT]
        return CpuTime(
            at=time.time(), interval_us=interval_us, cpus=len(both),
            idle_us=idle_us, steal_us=grown[_STEAL],
            irq_us=grown[_IRQ] + grown[_SOFTIRQ] if self._irq_time else 0,
            busy_us=len(both) * interval_us - idle_us - grown[_STEAL])

    def account(self, told: CpuTime,
                samples: list[messages.UsageSample]) -> messages.HostUsage:
        """Whose the CPUs' time was.

        Clocks are read one after the other: when instances seem to have
        used more than there was, the next interval makes up for it.

        :param told: the interval that the samples are of.
        :param samples: each is given its share of the host's work.
        """
        guest_us = sum(one.guest_us for one in samples)
        direct_us = sum(one.direct_us for one in samples)
        left_us = told.busy_us - guest_us - direct_us - self._owed_us
        self._owed_us = min(max(0, -left_us), told.cpus * _OWED_US)
        own_us = max(0, left_us)
        shares_us = shared.shares_us(
            samples, min(own_us, told.irq_us) if self._irq_time else own_us,
            self._irq_time)
        for place, share_us in enumerate(shares_us):
            if share_us:
                samples[place] = dataclasses.replace(
                    samples[place], shared_us=share_us)
        return messages.HostUsage(
            at=told.at, interval_us=told.interval_us, cpus=told.cpus,
            idle_us=told.idle_us, steal_us=told.steal_us,
            irq_us=told.irq_us, guest_us=guest_us, direct_us=direct_us,
            shared_us=sum(shares_us), own_us=own_us - sum(shares_us))

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

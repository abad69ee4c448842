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
was neither idle nor stolen by the hypervisor below was busy. Interrupts are
told apart only by kernels with CONFIG_IRQ_TIME_ACCOUNTING; elsewhere they
are in the time of whoever they interrupted.
"""

import dataclasses
import os
import time

from oslo_log import log as logging


LOG = logging.getLogger(__name__)

#: proc_stat(5): fields of a line, after its name.
_IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _STEAL = 3, 4, 5, 6, 7


@dataclasses.dataclass(frozen=True, slots=True)
class HostSample:
    """What all CPUs of a host did in one interval.

    ``idle_us + steal_us + instances_us + own_us`` is ``cpus`` times the
    interval, but for the instant between the clocks' readings.

    :param at: end of the interval.
    :param interval_us: its measured length.
    :param cpus: that were online all the time.
    :param steal_us: taken by the hypervisor below, where there is one.
    :param irq_us: in interrupts, where the kernel tells; part of the others.
    :param instances_us: what instances were accounted: guest and direct.
    :param own_us: what the host did beside.
    """

    at: float
    interval_us: int
    cpus: int
    idle_us: int
    steal_us: int
    irq_us: int
    instances_us: int
    own_us: int


class HostMeter:
    """Reads the host's CPU time once a pass.

    Used by one thread at a time.

    :param proc: where procfs is.
    """

    def __init__(self, proc: str = '/proc') -> None:
        self._path = os.path.join(proc, 'stat')
        self._us_per_tick = 1_000_000 // os.sysconf('SC_CLK_TCK')
        self._last: tuple[int, dict[str, list[int]]] | None = None

    def sample(self, instances_us: int) -> HostSample | None:
        """What the CPUs did since the last call.

        CPUs that came or went in between are left out of that interval.

        :param instances_us: what instances were accounted in it.
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
        busy_us = max(0, len(both) * interval_us - idle_us - grown[_STEAL])
        return HostSample(
            at=time.time(), interval_us=interval_us, cpus=len(both),
            idle_us=idle_us, steal_us=grown[_STEAL],
            irq_us=grown[_IRQ] + grown[_SOFTIRQ],
            instances_us=instances_us,
            own_us=max(0, busy_us - instances_us))

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

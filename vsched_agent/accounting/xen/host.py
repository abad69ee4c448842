# SPDX-License-Identifier: Apache-2.0

"""Accounts the CPU time of a Xen host, of which the first domain is a part.

The first domain's kernel sees its own vCPUs, not the host's CPUs. The
hypervisor counts what domains ran; what no domain ran was idle. What the first
domain ran is divided among instances and itself by
:mod:`vsched_lib.model.first_domain`.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import os
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.accounting import base as readings
from vsched_agent.accounting import wall_clock
from vsched_agent.hypervisor import base
from vsched_lib.contract import messages
from vsched_lib.model import first_domain

LOG = logging.getLogger(__name__)

#: Largest difference for each CPU between counters that are not read at the
#: same moment: a busy daemon needs some time for each answer. More than that
#: is not corrected later.
_OWED_US = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class HostTime:
    """Time of a host in one interval.

    :param at: end of the interval.
    :param interval_us: its measured length.
    :param cpus: of the host.
    :param first_domain_us: what the first domain ran.
    :param processes_us: of that, its processes in user mode; 0 if unknown.
    """

    at: float
    interval_us: int
    cpus: int
    first_domain_us: int
    processes_us: int


class _Last(ty.NamedTuple):
    read_ns: int
    cpus: int
    first_domain_ns: int
    processes_us: int


class _Missed(ty.NamedTuple):
    """What samples have had of the host's next interval."""

    guest_us: int
    direct_us: int


class FirstDomainMeter(readings.CpuMeter):
    """Reads the time of the first domain once a pass, and divides it.

    Used by one thread at a time.

    :param times: the driver, which asks the hypervisor.
    :param proc: where procfs is.
    """

    def __init__(self, times: base.DomainTimes, proc: str = '/proc') -> None:
        self._times = times
        self._path = os.path.join(proc, 'stat')
        self._us_per_tick = 1_000_000 // os.sysconf('SC_CLK_TCK')
        self._last: _Last | None = None
        self._owed_us = 0
        self._missed = _Missed(0, 0)
        self._failed = False
        self.prices = first_domain.Prices()

    def read(self) -> HostTime | None:
        """Return the host's time since the last call.

        :returns: None at the first call, and when the hypervisor does not
            answer; the next call covers both intervals.
        """
        try:
            cpus, first_domain_ns = self._times.host_time()
        except base.HypervisorUnavailable as problem:
            if not self._failed:
                LOG.warning(
                    "the host's CPU time is not available: %s", problem
                )
            self._failed = True
            return None
        if self._failed:
            LOG.info("the host's CPU time is available again")
            self._failed = False
        now_ns = time.monotonic_ns()
        last = self._last
        self._last = _Last(now_ns, cpus, first_domain_ns, self._processes_us())
        if last is None:
            return None
        # Differences of whole microseconds, so that none is lost.
        return HostTime(
            wall_clock.seconds(now_ns, wall_clock.offset_ns()),
            (now_ns - last.read_ns) // 1000,
            min(cpus, last.cpus),
            max(0, first_domain_ns // 1000 - last.first_domain_ns // 1000),
            max(0, self._last.processes_us - last.processes_us),
        )

    def account(
        self, total: HostTime, samples: list[messages.UsageSample]
    ) -> messages.HostUsage:
        """Divide the host's time among instances, the host and idleness.

        Domains are not read at the same moment: when they seem to have run
        more than all CPUs have, the next interval corrects it.

        After intervals in which the hypervisor did not answer for the host,
        the usage includes what their samples had; see :meth:`missed`.

        :param total: the interval that the samples are of.
        :param samples: each is given its charges.
        """
        works = [
            first_domain.Work(
                one.direct_us,
                {
                    'net_rx': one.net_rx_packets,
                    'net_tx': one.net_tx_packets,
                    'disk_read': one.disk_read_requests,
                    'disk_write': one.disk_write_requests,
                },
            )
            for one in samples
        ]
        missed, self._missed = self._missed, _Missed(0, 0)
        had_us = min(missed.direct_us, total.first_domain_us)
        charges, own_us = first_domain.divide(
            total.first_domain_us - had_us, works, self.prices.prices_ns
        )
        if not any(missed):
            self.prices.observe(
                total.first_domain_us,
                total.interval_us,
                works,
                total.processes_us,
            )
        for place, charge in enumerate(charges):
            samples[place] = dataclasses.replace(
                samples[place],
                direct_us=charge.direct_us,
                shared_us=charge.shared_us,
            )
        guest_us = missed.guest_us + sum(one.guest_us for one in samples)
        left_us = (
            total.cpus * total.interval_us
            - guest_us
            - total.first_domain_us
            - self._owed_us
        )
        self._owed_us = min(max(0, -left_us), total.cpus * _OWED_US)
        return messages.HostUsage(
            at=total.at,
            interval_us=total.interval_us,
            cpus=total.cpus,
            idle_us=max(0, left_us),
            steal_us=0,
            irq_us=0,
            guest_us=guest_us,
            direct_us=had_us + sum(one.direct_us for one in charges),
            shared_us=sum(one.shared_us for one in charges),
            own_us=own_us,
        )

    def missed(self, samples: Sequence[messages.UsageSample]) -> None:
        """Keep what instances ran while the host's time was not available.

        Their samples are not charged for shared work, which stays the first
        domain's own. Nothing is kept before the first answer, with which the
        host's first interval begins.
        """
        if not self._failed or self._last is None:
            return
        self._missed = _Missed(
            self._missed.guest_us + sum(one.guest_us for one in samples),
            self._missed.direct_us + sum(one.direct_us for one in samples),
        )

    def checkpoint(self) -> dict[str, ty.Any] | None:
        """Return the counters of the last call and prices, as JSON types."""
        if self._last is None:
            return None
        return {
            **self._last._asdict(),
            'owed_us': self._owed_us,
            'missed_us': list(self._missed),
            'prices_ns': dict(self.prices.prices_ns),
        }

    def resume(self, checkpoint: Mapping[str, ty.Any] | None) -> None:
        """Continue from what :meth:`checkpoint` returned.

        :raises ValueError, TypeError, LookupError: when it is malformed.
        """
        if checkpoint is None:
            return
        last = _Last(*(int(checkpoint[name]) for name in _Last._fields))
        owed_us = int(checkpoint['owed_us'])
        guest_us, direct_us = checkpoint['missed_us']
        missed = _Missed(int(guest_us), int(direct_us))
        prices = first_domain.Prices(
            {
                str(event): float(price_ns)
                for event, price_ns in checkpoint['prices_ns'].items()
            }
        )
        self._last, self._owed_us, self.prices = last, owed_us, prices
        self._missed = missed

    def _processes_us(self) -> int:
        """Return what processes have run in user mode since the boot.

        Ticks sample it, and it only helps to find prices. When reading fails
        it is taken to have stood still.
        """
        try:
            with open(self._path, encoding='ascii') as file:
                user, nice = file.readline().split()[1:3]
            return (int(user) + int(nice)) * self._us_per_tick
        except (OSError, ValueError) as problem:
            LOG.debug('%s: %s', self._path, problem)
            return self._last.processes_us if self._last else 0

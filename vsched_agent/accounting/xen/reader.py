# SPDX-License-Identifier: Apache-2.0

"""Reads domains of Xen, and the first domain's threads that serve them.

The hypervisor counts what vCPUs run. It does not report how often they began
to run nor how long they waited. The first domain's kernel counts its threads.
"""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import os
import time
import typing as ty

from vsched_agent.accounting import base as readings
from vsched_agent.accounting import counters
from vsched_agent.accounting.xen import backends
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.xen import vcpu_ids

Role = readings.Role

#: How long threads of a domain are searched often after its start, or after
#: a change of its definition: until then its drivers have connected.
NEW_S = 120.0


class Past(ty.NamedTuple):
    """An earlier agent's last reading of a domain.

    :param read_ns: see :class:`_Domain`, as the next one.
    :param number: of the domain.
    :param times_ns: of its vCPUs.
    :param threads: by number.
    """

    read_ns: int
    read_ticks: int
    number: int
    times_ns: tuple[int, ...]
    threads: Mapping[int, counters.Snapshot]


@dataclasses.dataclass(slots=True)
class _Domain:
    """A domain and when it was last read.

    :param domain: as it was then.
    :param since_s: when its definition was seen for the first time.
    :param read_ns: on the monotonic clock.
    :param read_ticks: the same moment on the kernel's clock of start times.
    :param times_ns: of its vCPUs, by index.
    :param threads: that serve it.
    """

    domain: base.Domain
    since_s: float
    read_ns: int
    read_ticks: int
    times_ns: tuple[int, ...]
    threads: dict[int, counters.Thread] = dataclasses.field(
        default_factory=dict
    )


class DomainReader(readings.Reader):
    """Reads domains and the threads that serve them.

    :param times: the driver, which asks the hypervisor.
    :param max_open_files: see :class:`counters.ThreadFiles`.
    :param proc: where procfs is.
    :param sys: where sysfs is.
    """

    def __init__(
        self,
        times: base.DomainTimes,
        max_open_files: int | None = None,
        proc: str = '/proc',
        sys: str = '/sys',
    ) -> None:
        self.files = counters.ThreadFiles(max_open_files, proc)
        self._times = times
        self._backends = backends.BackendThreads(proc)
        self._sys = sys
        self._ticks_per_s = os.sysconf('SC_CLK_TCK')
        self._known: dict[str, _Domain] = {}
        self._resumed: dict[str, Past] = {}

    def read(self, domain: base.Domain) -> readings.Reading | None:
        """Return the CPU use of a domain and of its threads.

        A known domain that has restarted since the last call, and a thread,
        count from their start; a domain that was not known, from now. A
        thread that is found late counts from then, as what it has run before
        was the first domain's own.

        :raises base.HypervisorUnavailable: when it does not answer. The next
            reading covers both intervals.
        """
        times_ns = self._times.vcpu_times_ns(domain.uuid)
        if times_ns is None:
            return None
        now_s = time.monotonic()
        now_ns, now_ticks = time.monotonic_ns(), self._now_ticks()
        known = self._known.get(domain.uuid)
        past = self._past(domain, known)
        if known is None or known.domain.pid != domain.pid:
            if known is not None:
                # Restarted: another domain, with threads of its own.
                self.files.forget(known.threads.values())
            known = _Domain(domain, now_s, 0, 0, ())
            self._known[domain.uuid] = known
        elif known.domain is not domain:
            known.domain, known.since_s = domain, now_s
        known.read_ns, known.read_ticks = now_ns, now_ticks
        known.times_ns = times_ns
        uses = self._threads(known, past, now_s)
        if past is None:
            return None
        before_ns = past.times_ns
        vcpus = tuple(
            readings.ThreadUse(
                vcpu_ids.encode(_number(domain), index),
                Role.VCPU,
                counters.grown(
                    before_ns[index] if index < len(before_ns) else 0, ran_ns
                ),
                0,
                0,
            )
            for index, ran_ns in enumerate(times_ns)
        )
        return readings.Reading(
            domain.uuid,
            now_ns,
            now_ns - past.read_ns,
            (*vcpus, *uses),
            sum(use.run_ns for use in uses),
            vcpus_are_threads=False,
        )

    def disk_counters(
        self, uuids: Collection[str]
    ) -> Mapping[str, Mapping[str, base.DiskCounters]]:
        """Return disk counters by instance and disk.

        They are in files of the first domain: no domain has to answer.

        :param uuids: of instances that were read.
        """
        numbers = {
            uuid: _number(self._known[uuid].domain)
            for uuid in uuids
            if uuid in self._known
        }
        found = backends.disk_counters(numbers.values(), self._sys)
        return {
            uuid: found[number]
            for uuid, number in numbers.items()
            if number in found
        }

    def keep(self, uuids: Collection[str]) -> None:
        for uuid in self._known.keys() - uuids:
            self.files.forget(self._known.pop(uuid).threads.values())
        for uuid in self._resumed.keys() - uuids:
            del self._resumed[uuid]

    def close(self) -> None:
        self.keep(())

    def checkpoint(self) -> dict[str, ty.Any]:
        return {
            uuid: {
                'read_ns': known.read_ns,
                'read_ticks': known.read_ticks,
                'number': _number(known.domain),
                'times_ns': list(known.times_ns),
                'threads': [
                    list(thread.snapshot())
                    for thread in known.threads.values()
                ],
            }
            for uuid, known in self._known.items()
        }

    def resume(self, checkpoint: Mapping[str, ty.Any]) -> None:
        resumed = {}
        for uuid, one in checkpoint.items():
            threads = [
                counters.Snapshot(*map(int, fields))
                for fields in one['threads']
            ]
            resumed[str(uuid)] = Past(
                int(one['read_ns']),
                int(one['read_ticks']),
                int(one['number']),
                tuple(map(int, one['times_ns'])),
                {thread.tid: thread for thread in threads},
            )
        self._resumed = resumed

    def _past(self, domain: base.Domain, known: _Domain | None) -> Past | None:
        """Return the last reading of an instance; None without one.

        Of a domain that has restarted since, it has nothing but the time.
        """
        if known is None:
            past = self._resumed.pop(domain.uuid, None)
            if past is None:
                return None
        else:
            past = Past(
                known.read_ns,
                known.read_ticks,
                _number(known.domain),
                known.times_ns,
                {},
            )
        if past.number != _number(domain):
            return past._replace(times_ns=(), threads={})
        return past

    def _threads(
        self, known: _Domain, past: Past | None, now_s: float
    ) -> list[readings.ThreadUse]:
        changed = now_s - known.since_s < NEW_S
        uses = []
        for thread in list(known.threads.values()):
            use = self.files.advance(thread)
            if use is None:
                # A driver that reconnects gets other threads.
                self.files.forget((known.threads.pop(thread.tid),))
                known.since_s, changed = now_s, True
            else:
                uses.append(use)
        present = self._backends.of(
            _number(known.domain),
            changed,
            [one.device for one in known.domain.interfaces],
        )
        for tid, role in sorted(present.items()):
            if tid in known.threads:
                continue
            found = self.files.add(tid, tid, role)
            if found is not None:
                known.threads[tid] = found
                uses.append(_first_use(found, past))
        return uses

    def _now_ticks(self) -> int:
        # Start times count from boot, suspended time included.
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) * self._ticks_per_s)


def _number(domain: base.Domain) -> int:
    """Return Xen's number of a domain."""
    return vcpu_ids.decode(domain.pid)[0]


def _first_use(
    thread: counters.Thread, past: Past | None
) -> readings.ThreadUse:
    """Return what a thread that was not known has used since."""
    if past is not None:
        before = past.threads.get(thread.tid)
        if before and before.start_ticks == thread.start_ticks:
            return thread.since(before)
        if thread.start_ticks >= past.read_ticks:
            return thread.use()
    return readings.ThreadUse(thread.tid, thread.role, 0, 0, 0)

# SPDX-License-Identifier: Apache-2.0

"""A hypervisor without virtual machines, for tests and benchmarks.

Its vCPUs are real threads of one child process, so that the kernel can be
asked to schedule and to count them; or mere numbers where no test asks the
kernel.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import os
import queue
import threading
import typing as ty
import uuid as uuids

from oslo_log import log as logging

from vsched_agent.accounting import readers
from vsched_agent.hypervisor import base
from vsched_agent.tests import shared_process
from vsched_agent.tests import thread_farm

LOG = logging.getLogger(__name__)

# Its instances share one process.
readers.READERS['simulated'] = shared_process.SharedProcessReader

# Numbers above the kernel's highest (PID_MAX_LIMIT) are nobody's threads.
_FIRST_FAKE_TID = 1 << 22


class Threads(ty.Protocol):
    """Where vCPUs get their threads from."""

    @property
    def pid(self) -> int:
        """The process of the threads."""

    def add(self, count: int) -> tuple[int, ...]:
        """Start threads."""

    def remove(self, tids: Iterable[int]) -> None:
        """End threads."""

    def close(self) -> None:
        """End all of them."""


class FakeThreads:
    """Thread numbers without threads."""

    def __init__(self) -> None:
        self._tids = itertools.count(_FIRST_FAKE_TID)

    @property
    def pid(self) -> int:
        """This process: there is no other."""
        return os.getpid()

    def add(self, count: int) -> tuple[int, ...]:
        """Give out numbers, none of them twice."""
        return tuple(itertools.islice(self._tids, count))

    def remove(self, tids: Iterable[int]) -> None:
        """Nothing was started."""

    def close(self) -> None:
        """Nothing was started."""


class SimulatedHypervisor(base.Hypervisor):
    """Domains that exist because somebody said so.

    As with a real one, domains live on while nobody watches them, and
    changes are told from a thread of its own.

    :param threads: where vCPUs get their threads from; closed by
        :meth:`close`.
    """

    kind = 'simulated'

    def __init__(self, threads: Threads | None = None) -> None:
        self._threads: Threads = threads or FakeThreads()
        self._lock = threading.Lock()
        self._domains: dict[str, base.Domain] = {}
        self._disk_counters: dict[str, dict[str, base.DiskCounters]] = {}
        self._away = False
        self._on_change: base.ChangeCallback | None = None
        self._changes: queue.SimpleQueue[tuple[str | None] | None] = (
            queue.SimpleQueue()
        )
        self._teller: threading.Thread | None = None

    @classmethod
    def with_real_threads(cls, busy_us: int = 0) -> ty.Self:
        """One whose vCPUs are threads that the kernel knows.

        :param busy_us: see :class:`thread_farm.ThreadFarm`.
        """
        return cls(thread_farm.ThreadFarm(busy_us))

    # The seam

    def start(self, on_change: base.ChangeCallback) -> None:
        if self._teller is not None:
            raise RuntimeError('started already')
        self._on_change = on_change
        self._teller = threading.Thread(
            target=self._tell, name='vsched-simulated', daemon=True
        )
        self._teller.start()
        if not self._away:
            self._changed(None)

    def stop(self) -> None:
        teller, self._teller = self._teller, None
        if teller is not None:
            self._changes.put(None)
            teller.join()

    @property
    def connected(self) -> bool:
        return self._teller is not None and not self._away

    def domains(self) -> Sequence[base.Domain]:
        self._check()
        with self._lock:
            return list(self._domains.values())

    def domain(self, uuid: str) -> base.Domain | None:
        self._check()
        with self._lock:
            return self._domains.get(uuid)

    def disk_counters(
        self, uuids: Collection[str]
    ) -> Mapping[str, Mapping[str, base.DiskCounters]]:
        self._check()
        with self._lock:
            return {
                uuid: dict(self._disk_counters.get(uuid, {}))
                for uuid in uuids
                if uuid in self._domains and self._domains[uuid].disks
            }

    # What happens to the domains

    def add(
        self,
        vcpus: int = 1,
        *,
        extra_specs: Mapping[str, str] | None = None,
        pins: Mapping[int, frozenset[int]] | None = None,
        name: str | None = None,
        uuid: str | None = None,
        emulator_threads: int = 1,
        iothreads: int = 0,
        disks: Sequence[str] = (),
        server: base.Server | None = None,
    ) -> base.Domain:
        """Start a domain.

        :param pins: host CPUs by vCPU.
        :param disks: names of disks that have done nothing yet.
        :param server: what Nova knows it as; nothing if None.
        :returns: the domain as it would be seen.
        """
        uuid = uuid or str(uuids.uuid4())
        tids = self._threads.add(vcpus + emulator_threads + iothreads)
        pins = pins or {}
        domain = base.Domain(
            uuid=uuid,
            name=name or 'simulated-%s' % uuid[:8],
            pid=self._threads.pid,
            vcpus=tuple(
                base.Vcpu(index, tid, pins.get(index))
                for index, tid in enumerate(tids[:vcpus])
            ),
            emulator_tids=tids[vcpus : vcpus + emulator_threads],
            iothread_tids=tids[vcpus + emulator_threads :],
            extra_specs=dict(extra_specs or {}),
            disks=tuple(disks),
            server=server or base.Server(),
        )
        with self._lock:
            self._disk_counters[uuid] = dict.fromkeys(
                disks, base.DiskCounters(0, 0)
            )
        self._put(domain)
        return domain

    def populate(
        self,
        domains: int,
        vcpus: int,
        extra_specs: Mapping[str, str] | None = None,
    ) -> None:
        """Start many like one another."""
        for _ in range(domains):
            self.add(vcpus, extra_specs=extra_specs)

    def remove(self, uuid: str) -> None:
        """End a domain, and its threads with it."""
        with self._lock:
            domain = self._domains.pop(uuid)
            del self._disk_counters[uuid]
        self._threads.remove(_tids(domain))
        self._changed(uuid)

    def change(self, uuid: str, **fields: ty.Any) -> base.Domain:
        """Change what a domain's definition says.

        :param fields: of :class:`base.Domain`, such as ``extra_specs``.
        """
        with self._lock:
            domain = dataclasses.replace(self._domains[uuid], **fields)
        self._put(domain)
        return domain

    def move_blocks(
        self, uuid: str, disk: str, reads: int = 0, writes: int = 0
    ) -> None:
        """A disk completes requests."""
        with self._lock:
            before = self._disk_counters[uuid][disk]
            self._disk_counters[uuid][disk] = base.DiskCounters(
                before.reads + reads, before.writes + writes
            )

    def pin(
        self, uuid: str, index: int, cpus: frozenset[int] | None
    ) -> base.Domain:
        """Confine a vCPU to host CPUs, or let it run anywhere."""
        with self._lock:
            vcpus = self._domains[uuid].vcpus
        return self.change(
            uuid,
            vcpus=tuple(
                dataclasses.replace(vcpu, pinned_cpus=cpus)
                if vcpu.index == index
                else vcpu
                for vcpu in vcpus
            ),
        )

    def set_vcpus(self, uuid: str, count: int) -> base.Domain:
        """Plug vCPUs in, or the last ones out."""
        with self._lock:
            vcpus = self._domains[uuid].vcpus
        newer = self._threads.add(max(0, count - len(vcpus)))
        domain = self.change(
            uuid,
            vcpus=vcpus[:count]
            + tuple(
                base.Vcpu(index, tid)
                for index, tid in enumerate(newer, len(vcpus))
            ),
        )
        self._threads.remove(vcpu.tid for vcpu in vcpus[count:])
        return domain

    def reboot(self, uuid: str) -> None:
        """Reset a guest: its threads stay."""
        self._changed(uuid)

    def restart(self, uuid: str) -> base.Domain:
        """Stop a domain and start it again: all of its threads are new."""
        with self._lock:
            old = self._domains[uuid]
        self.remove(uuid)
        pins = {
            vcpu.index: vcpu.pinned_cpus
            for vcpu in old.vcpus
            if vcpu.pinned_cpus is not None
        }
        return self.add(
            len(old.vcpus),
            extra_specs=old.extra_specs,
            pins=pins,
            name=old.name,
            uuid=uuid,
            emulator_threads=len(old.emulator_tids),
            iothreads=len(old.iothread_tids),
            disks=old.disks,
            server=old.server,
        )

    def lose_connection(self) -> None:
        """Nobody answers any more; the domains run on."""
        self._away = True
        self._changed(None)

    def regain_connection(self) -> None:
        """It answers again."""
        self._away = False
        self._changed(None)

    def close(self) -> None:
        """End every domain."""
        self.stop()
        self._threads.close()

    # Inside

    def _check(self) -> None:
        if not self.connected:
            raise base.HypervisorUnavailable(
                'the simulated hypervisor is away'
            )

    def _put(self, domain: base.Domain) -> None:
        with self._lock:
            self._domains[domain.uuid] = domain
        self._changed(domain.uuid)

    def _changed(self, uuid: str | None) -> None:
        if self._teller is not None and (uuid is None or not self._away):
            self._changes.put((uuid,))

    def _tell(self) -> None:
        while True:
            change = self._changes.get()
            if change is None:
                return
            if self._on_change is not None:
                try:
                    self._on_change(change[0])
                except Exception:
                    LOG.exception(
                        'a change of %s could not be passed on', change[0]
                    )


def _tids(domain: base.Domain) -> tuple[int, ...]:
    return (
        *(vcpu.tid for vcpu in domain.vcpus),
        *domain.emulator_tids,
        *domain.iothread_tids,
    )

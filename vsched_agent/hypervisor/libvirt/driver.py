# SPDX-License-Identifier: Apache-2.0

"""Running instances from libvirt's QEMU driver.

Besides events, a domain's process indicates changes: a scan of all domains
costs a read of each process's list of threads.
"""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import pathlib
import typing as ty

import libvirt
from oslo_log import log as logging

from vsched_agent.host import cpu_list
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.libvirt import cached_driver
from vsched_agent.hypervisor.libvirt import disk_stats
from vsched_agent.hypervisor.libvirt import domain as definitions
from vsched_agent.hypervisor.libvirt import monitor
from vsched_agent.hypervisor import qemu_process
from vsched_agent.hypervisor import thread_watch
from vsched_agent.hypervisor import watch
from vsched_lib import bounded_calls

LOG = logging.getLogger(__name__)

#: Where the QEMU driver of a system daemon keeps pid and state files.
RUN_DIR = '/run/libvirt/qemu'


class _Known(ty.NamedTuple):
    """The cached properties of one domain.

    :param stamp: of the newest change that they include.
    """

    stamp: int
    domain_id: int
    process: qemu_process.Process
    tids: frozenset[int]
    domain: base.Domain


@dataclasses.dataclass(slots=True)
class _Scan:
    """State of one scan of one or all domains."""

    online: frozenset[int]
    ask_monitors: bool


class LibvirtHypervisor(cached_driver.CachedDriver[_Known, _Scan]):
    """The driver for QEMU and KVM.

    :param uri: libvirt's URI.
    :param run_dir: where libvirt's QEMU driver keeps pid and state files.
    :param reconnect_max_s: longest wait between two attempts to connect.
    :param keepalive_s: see :class:`cached_driver.CachedDriver`.
    :param call_timeout_s: longest wait for an answer of the daemon.
    :param watch_interval_s: seconds between two checks for plugged vCPUs,
        which have no libvirt event.
    :param monitor_timeout_s: longest wait for an answer of one domain's
        QEMU; 0 never queries it and identifies threads by their names.
    """

    kind = 'qemu'

    def __init__(
        self,
        uri: str = 'qemu:///system',
        *,
        run_dir: str = RUN_DIR,
        reconnect_max_s: float = 30.0,
        keepalive_s: int = 5,
        call_timeout_s: float = 10.0,
        watch_interval_s: float = 0.5,
        monitor_timeout_s: float = 3.0,
    ) -> None:
        super().__init__(uri, reconnect_max_s, keepalive_s, call_timeout_s)
        self._run_dir = pathlib.Path(run_dir)
        self._watch_interval_s = watch_interval_s
        self._monitor_timeout_s = monitor_timeout_s

    def _make_watch(self) -> watch.Watch:
        return thread_watch.ThreadWatch(
            self._watch_interval_s, self._watched, self._check_threads
        )

    def _scan(self, connection: libvirt.virConnect) -> _Scan:
        return _Scan(cpu_list.online(), self._monitor_timeout_s > 0)

    def disk_counters(
        self, uuids: Collection[str]
    ) -> Mapping[str, Mapping[str, base.DiskCounters]]:
        return disk_stats.read_counters(
            self._started(), self._current(), uuids
        )

    # Its threads, without libvirt

    def _is_alive(self, known: _Known) -> bool:
        return qemu_process.alive(known.process)

    def _refreshed(self, uuid: str, known: _Known) -> _Known | None:
        """Update a cached domain's helper threads.

        QEMU starts and ends helper threads with the guest's I/O.

        :returns: None when vCPU or I/O threads changed.
        """
        if qemu_process.tids(known.process.pid) == known.tids:
            return known
        threads = qemu_process.comms(known.process.pid)
        before = known.domain
        iothreads = qemu_process.iothreads_by_comm(threads)
        vcpus = [vcpu.tid for vcpu in before.vcpus]
        by_comm = qemu_process.vcpus_by_comm(threads).values()
        if iothreads != before.iothread_tids or not threads.keys() >= set(
            vcpus
        ) >= set(by_comm):
            return None
        newer = known._replace(
            tids=frozenset(threads),
            domain=(
                dataclasses.replace(
                    before,
                    emulator_tids=tuple(
                        sorted(threads.keys() - set(vcpus) - set(iothreads))
                    ),
                )
            ),
        )
        with self._lock:
            if self._known.get(uuid) is known:
                self._known[uuid] = newer
        return newer

    def _watched(self) -> list[thread_watch.Watched]:
        with self._lock:
            return [
                thread_watch.Watched(uuid, known.process.pid, len(known.tids))
                for uuid, known in self._known.items()
                if self._is_current(uuid, known)
            ]

    def _check_threads(self, uuid: str) -> None:
        with self._lock:
            known = self._known.get(uuid)
        # The end of a process causes a separate event.
        if (
            known is not None
            and qemu_process.alive(known.process)
            and self._refreshed(uuid, known) is None
        ):
            self._event(uuid)

    # Inspection of one domain

    def _inspect(
        self,
        connection: libvirt.virConnect,
        uuid: str,
        domain: libvirt.virDomain,
        scan: _Scan,
        stamp: int,
    ) -> _Known | None:
        text = self._started().run_domain(uuid, connection, domain.XMLDesc)
        process = (
            None
            if text is None
            else qemu_process.find(uuid, domain.name(), self._run_dir)
        )
        if text is None or process is None:
            # It has just ended, or is about to start: an event follows.
            LOG.debug('%s has no process', domain.name())
            return None
        definition = definitions.parse(text)
        threads = qemu_process.comms(process.pid)
        vcpus = self._vcpus(
            connection, uuid, domain, process.pid, threads, scan
        )
        if not vcpus:
            LOG.info('%s has no vCPU threads yet', domain.name())
            return None
        iothreads = qemu_process.iothreads_by_comm(threads)
        busy = set(iothreads).union(vcpus.values())
        seen = base.Domain(
            uuid=uuid,
            name=domain.name(),
            pid=process.pid,
            vcpus=tuple(
                base.Vcpu(
                    index, tid, definition.pinned_cpus(index, scan.online)
                )
                for index, tid in sorted(vcpus.items())
            ),
            emulator_tids=tuple(sorted(threads.keys() - busy)),
            iothread_tids=iothreads,
            extra_specs=definition.metadata.extra_specs,
            metadata_problem=definition.metadata.problem,
            interfaces=definition.interfaces,
            disks=definition.disks,
            vcpu_quota=definition.vcpu_quota,
            server=definition.metadata.server,
        )
        return _Known(stamp, domain.ID(), process, frozenset(threads), seen)

    def _vcpus(
        self,
        connection: libvirt.virConnect,
        uuid: str,
        domain: libvirt.virDomain,
        pid: int,
        threads: dict[int, str],
        scan: _Scan,
    ) -> dict[int, int]:
        """Return the thread of each vCPU from QEMU, verified with procfs."""
        by_comm = qemu_process.vcpus_by_comm(threads)
        reported = self._ask_monitor(connection, uuid, domain, scan)
        if reported is not None and reported != by_comm:
            # A vCPU may have been added between the two reads.
            threads.update(qemu_process.comms(pid))
            by_comm = qemu_process.vcpus_by_comm(threads)
            if by_comm and reported != by_comm:
                LOG.warning(
                    '%s: QEMU says that its vCPUs run in threads '
                    '%s, their names say %s',
                    domain.name(),
                    reported,
                    by_comm,
                )
        if reported is None:
            reported = by_comm or qemu_process.vcpus_by_cgroup(pid)
        return qemu_process.existing_vcpus(reported, threads)

    def _ask_monitor(
        self,
        connection: libvirt.virConnect,
        uuid: str,
        domain: libvirt.virDomain,
        scan: _Scan,
    ) -> dict[int, int] | None:
        if not scan.ask_monitors or self._calls is None:
            return None
        try:
            return self._calls.bounded.run(
                ('monitor', uuid),
                self._monitor_timeout_s,
                lambda: monitor.vcpus(domain),
            )
        except bounded_calls.CallTimedOut as error:
            # Wait for at most one hanging monitor per scan.
            scan.ask_monitors = False
            reason: Exception = error
        except libvirt.libvirtError as error:
            self._check(connection)
            reason = error
        except monitor.UnexpectedAnswer as error:
            reason = error
        LOG.warning(
            '%s: its monitor does not return its vCPUs (%s); its '
            'threads are identified by their names',
            domain.name(),
            reason,
        )
        return None

    def _check(self, connection: libvirt.virConnect) -> None:
        if self._calls is not None:
            self._calls.check(connection)

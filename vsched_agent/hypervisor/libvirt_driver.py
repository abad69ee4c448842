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

"""Running instances as libvirt's QEMU driver shows them.

What is known of a domain is kept until an event, or its process, says that
it changed: a look at all domains then costs one call to the daemon, and a
read of each process's list of threads.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import pathlib
import threading
import typing as ty
import uuid as uuids

import libvirt
from oslo_log import log as logging

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import bounded_calls
from vsched_agent.hypervisor import cpu_list
from vsched_agent.hypervisor import definition as definitions
from vsched_agent.hypervisor import disk_stats
from vsched_agent.hypervisor import libvirt_calls
from vsched_agent.hypervisor import libvirt_connection
from vsched_agent.hypervisor import qemu_monitor
from vsched_agent.hypervisor import qemu_process
from vsched_agent.hypervisor import thread_watch

LOG = logging.getLogger(__name__)

#: Where the QEMU driver of a system daemon keeps pid and state files.
RUN_DIR = '/run/libvirt/qemu'


class _Known(ty.NamedTuple):
    """What was found out about one domain.

    :param stamp: of the newest change that it takes in.
    """

    stamp: int
    domain_id: int
    process: qemu_process.Process
    tids: frozenset[int]
    domain: base.Domain


@dataclasses.dataclass(slots=True)
class _Look:
    """What holds for one look at one or all domains."""

    online: frozenset[int]
    ask_monitors: bool


class LibvirtHypervisor(base.Hypervisor):
    """The driver for QEMU and KVM.

    :param uri: libvirt's URI.
    :param run_dir: where libvirt's QEMU driver keeps pid and state files.
    :param reconnect_max_s: longest wait between two attempts to connect.
    :param keepalive_s: see :class:`libvirt_connection.Connection`.
    :param call_timeout_s: longest wait for an answer of the daemon.
    :param watch_interval_s: between two looks for vCPUs that were plugged
        in, of which libvirt does not tell.
    :param monitor_timeout_s: longest wait for an answer of one domain's
        QEMU; 0 never asks it and takes threads by their names.
    """

    kind = 'qemu'

    def __init__(self, uri: str = 'qemu:///system', *,
                 run_dir: str = RUN_DIR,
                 reconnect_max_s: float = 30.0,
                 keepalive_s: int = 5,
                 call_timeout_s: float = 10.0,
                 watch_interval_s: float = 0.5,
                 monitor_timeout_s: float = 3.0) -> None:
        self._uri = uri
        self._run_dir = pathlib.Path(run_dir)
        self._reconnect_max_s = reconnect_max_s
        self._keepalive_s = keepalive_s
        self._call_timeout_s = call_timeout_s
        self._watch_interval_s = watch_interval_s
        self._monitor_timeout_s = monitor_timeout_s
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        # Changes are numbered, so that one during a look is not taken for
        # one before it. What no event has named is as old as the epoch.
        self._stamps = itertools.count(1)
        self._changed: dict[str, int] = {}
        self._epoch = 0
        self._on_change: base.ChangeCallback | None = None
        self._connection: libvirt_connection.Connection | None = None
        self._calls: libvirt_calls.LibvirtCalls | None = None
        self._watch: thread_watch.ThreadWatch | None = None

    # The seam

    def start(self, on_change: base.ChangeCallback) -> None:
        if self._connection is not None:
            raise RuntimeError('started already')
        self._on_change = on_change
        self._calls = libvirt_calls.LibvirtCalls(
            self._uri, self._call_timeout_s, self._lost)
        self._connection = libvirt_connection.Connection(
            self._uri, self._reconnect_max_s, self._keepalive_s,
            self._event, self._state)
        self._watch = thread_watch.ThreadWatch(
            self._watch_interval_s, self._watched, self._suspect)
        self._connection.start()
        self._watch.start()

    def stop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        self._on_change = None
        if self._watch is not None:
            self._watch.stop()
        connection.stop()
        if self._calls is not None:
            self._calls.close()
        self._forget_all()

    @property
    def connected(self) -> bool:
        connection = self._connection
        return connection is not None and connection.current is not None

    def domains(self) -> Sequence[base.Domain]:
        connection = self._current()
        running = self._started().run('list', connection, lambda: [
            (one.UUIDString(), one) for one in connection.listAllDomains(
                libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE)])
        self._forget_others({uuid for uuid, _ in running})
        look = _Look(cpu_list.online(), self._monitor_timeout_s > 0)
        found = (self._known_or_seen(connection, uuid, domain, look)
                 for uuid, domain in running)
        return [one for one in found if one is not None]

    def domain(self, uuid: str) -> base.Domain | None:
        connection = self._current()
        try:
            uuid = str(uuids.UUID(uuid))
        except ValueError:
            return None
        found = self._started().run_domain(
            uuid, connection, lambda: connection.lookupByUUIDString(uuid))
        if found is None or found.ID() < 0:
            with self._lock:
                self._known.pop(uuid, None)
            return None
        look = _Look(cpu_list.online(), self._monitor_timeout_s > 0)
        return self._known_or_seen(connection, uuid, found, look)

    def disk_counters(self, uuids: Collection[str],
                      ) -> Mapping[str, Mapping[str, base.DiskCounters]]:
        return disk_stats.ask(self._started(), self._current(), uuids)

    # What the connection tells

    def _event(self, uuid: str) -> None:
        with self._lock:
            self._changed[uuid] = next(self._stamps)
        self._tell(uuid)

    def _state(self, connected: bool) -> None:
        # Nobody knows what happened, or will happen, without us.
        self._forget_all()
        self._tell(None)

    def _tell(self, uuid: str | None) -> None:
        on_change = self._on_change
        if on_change is None:
            return
        try:
            on_change(uuid)
        except Exception:
            # It is not the event loop's fault, and must not end it.
            LOG.exception('a change of %s could not be passed on', uuid)

    # What is remembered

    def _forget_all(self) -> None:
        with self._lock:
            self._known.clear()
            self._changed.clear()
            self._epoch = next(self._stamps)

    def _forget_others(self, running: set[str]) -> None:
        with self._lock:
            for uuid in self._known.keys() - running:
                del self._known[uuid]
            for uuid in self._changed.keys() - running:
                del self._changed[uuid]

    def _known_or_seen(self, connection: libvirt.virConnect, uuid: str,
                       domain: libvirt.virDomain,
                       look: _Look) -> base.Domain | None:
        with self._lock:
            last = self._known.get(uuid)
            stamp = self._changed.get(uuid, self._epoch)
        if last is not None:
            if (last.domain_id != domain.ID() or
                    not qemu_process.alive(last.process)):
                last = None
            elif last.stamp == stamp:
                known = self._freshen(uuid, last)
                if known is not None:
                    return known.domain
        try:
            seen = self._see(connection, uuid, domain, look, stamp)
        except base.HypervisorUnavailable as error:
            if not self.connected:
                raise
            # One domain that hangs must not hide the others, nor itself.
            LOG.warning('%s can not be asked (%s); %s', domain.name(), error,
                        'it stays as last seen' if last else 'left out')
            return last.domain if last else None
        with self._lock:
            if seen is None:
                self._known.pop(uuid, None)
            else:
                self._known[uuid] = seen
        return None if seen is None else seen.domain

    # Its threads, without libvirt

    def _freshen(self, uuid: str, known: _Known) -> _Known | None:
        """What is known, with the helper threads that run now.

        QEMU's helper threads come and go with the guest's I/O.

        :returns: None when vCPU or I/O threads changed.
        """
        if qemu_process.tids(known.process.pid) == known.tids:
            return known
        threads = qemu_process.comms(known.process.pid)
        before = known.domain
        iothreads = qemu_process.iothreads_by_comm(threads)
        vcpus = [vcpu.tid for vcpu in before.vcpus]
        by_comm = qemu_process.vcpus_by_comm(threads).values()
        if (iothreads != before.iothread_tids or
                not threads.keys() >= set(vcpus) >= set(by_comm)):
            return None
        newer = known._replace(tids=frozenset(threads), domain=(
            dataclasses.replace(before, emulator_tids=tuple(sorted(
                threads.keys() - set(vcpus) - set(iothreads))))))
        with self._lock:
            if self._known.get(uuid) is known:
                self._known[uuid] = newer
        return newer

    def _watched(self) -> list[thread_watch.Watched]:
        with self._lock:
            return [
                thread_watch.Watched(
                    uuid, known.process.pid, len(known.tids))
                for uuid, known in self._known.items()
                if known.stamp == self._changed.get(uuid, self._epoch)]

    def _suspect(self, uuid: str) -> None:
        with self._lock:
            known = self._known.get(uuid)
        # The end of a process has an event of its own.
        if (known is not None and qemu_process.alive(known.process) and
                self._freshen(uuid, known) is None):
            self._event(uuid)

    # A fresh look at one domain

    def _see(self, connection: libvirt.virConnect, uuid: str,
             domain: libvirt.virDomain, look: _Look,
             stamp: int) -> _Known | None:
        text = self._started().run_domain(uuid, connection, domain.XMLDesc)
        process = None if text is None else qemu_process.find(
            uuid, domain.name(), self._run_dir)
        if text is None or process is None:
            # It has just ended, or is about to start: its event will tell.
            LOG.debug('%s has no process', domain.name())
            return None
        definition = definitions.parse(text)
        threads = qemu_process.comms(process.pid)
        vcpus = self._vcpus(connection, uuid, domain, process.pid, threads,
                            look)
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
                base.Vcpu(index, tid,
                          definition.pinned_cpus(index, look.online))
                for index, tid in sorted(vcpus.items())),
            emulator_tids=tuple(sorted(threads.keys() - busy)),
            iothread_tids=iothreads,
            extra_specs=definition.metadata.extra_specs,
            metadata_problem=definition.metadata.problem,
            interfaces=definition.interfaces,
            disks=definition.disks)
        return _Known(stamp, domain.ID(), process, frozenset(threads), seen)

    def _vcpus(self, connection: libvirt.virConnect, uuid: str,
               domain: libvirt.virDomain, pid: int, threads: dict[int, str],
               look: _Look) -> dict[int, int]:
        """The thread of each vCPU: QEMU's word, checked with the kernel."""
        by_comm = qemu_process.vcpus_by_comm(threads)
        told = self._ask_monitor(connection, uuid, domain, look)
        if told is not None and told != by_comm:
            # A vCPU may have come between the two looks.
            threads.update(qemu_process.comms(pid))
            by_comm = qemu_process.vcpus_by_comm(threads)
            if by_comm and told != by_comm:
                LOG.warning('%s: QEMU says that its vCPUs run in threads '
                            '%s, their names say %s', domain.name(), told,
                            by_comm)
        if told is None:
            told = by_comm or qemu_process.vcpus_by_cgroup(pid)
        return qemu_process.agreed_vcpus(told, threads)

    def _ask_monitor(self, connection: libvirt.virConnect, uuid: str,
                     domain: libvirt.virDomain,
                     look: _Look) -> dict[int, int] | None:
        if not look.ask_monitors or self._calls is None:
            return None
        try:
            return self._calls.bounded.run(
                ('monitor', uuid), self._monitor_timeout_s,
                lambda: qemu_monitor.vcpus(domain))
        except bounded_calls.CallTimedOut as error:
            # One wait per look is enough to spend on hanging monitors.
            look.ask_monitors = False
            reason: Exception = error
        except libvirt.libvirtError as error:
            self._check(connection)
            reason = error
        except qemu_monitor.UnexpectedAnswer as error:
            reason = error
        LOG.warning('%s: its monitor does not tell its vCPUs (%s); its '
                    'threads are known by their names', domain.name(),
                    reason)
        return None

    # Calls to the daemon

    def _current(self) -> libvirt.virConnect:
        connection = self._connection
        current = connection.current if connection is not None else None
        if current is None:
            raise base.HypervisorUnavailable(
                'no connection to libvirt at %s' % self._uri)
        return current

    def _check(self, connection: libvirt.virConnect) -> None:
        if self._calls is not None:
            self._calls.check(connection)

    def _lost(self, connection: libvirt.virConnect) -> None:
        holder = self._connection
        if holder is not None:
            holder.lost(connection)

    def _started(self) -> libvirt_calls.LibvirtCalls:
        calls = self._calls
        if calls is None:
            raise base.HypervisorUnavailable('not started')
        return calls

# SPDX-License-Identifier: Apache-2.0

"""Running instances from libvirt's driver for Xen (libxl).

libvirt has their life cycle, their metadata, the number of their vCPUs and
the time that each of them has run.
What it lacks on Xen is done without it: disks are counted one by one, and
changes of vCPUs and of their pinning, which have no event, are found by a
comparison. vCPUs have no threads: see
:mod:`vsched_agent.hypervisor.xen.vcpu_ids`.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
import typing as ty

import libvirt
from oslo_log import log as logging

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.libvirt import cached_driver
from vsched_agent.hypervisor.libvirt import domain as definitions
from vsched_agent.hypervisor import watch
from vsched_agent.hypervisor.xen import vcpu_ids

LOG = logging.getLogger(__name__)

_LIVE = libvirt.VIR_DOMAIN_AFFECT_LIVE
#: What the name of an emulated network card ends with.
_EMULATED = '-emu'
#: Time between two checks, as a multiple of the duration of the last one: all
#: checks together use at most a twentieth of a CPU.
_PAUSE = 20


class _Known(ty.NamedTuple):
    """The cached properties of one domain.

    :param stamp: of the newest change that they include.
    :param text: the definition that they were read from.
    """

    stamp: int
    domain_id: int
    text: str
    vcpus: int
    domain: base.Domain


class XenHypervisor(
    cached_driver.CachedDriver[_Known, frozenset[int]], base.DomainTimes
):
    """The driver for Xen.

    Domains that were started by the toolstack alone are not instances:
    libvirt does not list them. The first domain is none either.

    :param uri: libvirt's URI.
    :param reconnect_max_s: longest wait between two attempts to connect.
    :param keepalive_s: see :class:`cached_driver.CachedDriver`.
    :param call_timeout_s: longest wait for an answer of the daemon.
    :param watch_interval_s: shortest time between two checks for changes that
        have no event.
    """

    kind = 'xen'
    # The first domain, which is no instance, has 0.
    least_id = 1

    def __init__(
        self,
        uri: str = 'xen:///system',
        *,
        reconnect_max_s: float = 30.0,
        keepalive_s: int = 5,
        call_timeout_s: float = 10.0,
        watch_interval_s: float = 0.5,
    ) -> None:
        super().__init__(uri, reconnect_max_s, keepalive_s, call_timeout_s)
        self._watch_interval_s = watch_interval_s

    def _make_watch(self) -> watch.Watch:
        return watch.Watch(
            'vsched-xen-watch',
            self._watch_interval_s,
            self.check_changes,
            _PAUSE,
        )

    def _scan(self, connection: libvirt.virConnect) -> frozenset[int]:
        """Return the CPUs of the host, which the first domain does not see."""
        node = self._started().run('node', connection, connection.getInfo)
        return frozenset(range(int(node[2])))

    def disk_counters(
        self, uuids: Collection[str]
    ) -> Mapping[str, Mapping[str, base.DiskCounters]]:
        connection = self._current()
        wanted = frozenset(uuids)
        if not wanted:
            return {}
        counted = {}
        for one in self.domains():
            if one.uuid in wanted and one.disks:
                counters = self._started().run_domain(
                    one.uuid,
                    connection,
                    functools.partial(_count, connection, one),
                )
                if counters:
                    counted[one.uuid] = counters
        return counted

    def vcpu_times_ns(self, uuid: str) -> tuple[int, ...] | None:
        connection = self._current()
        try:
            return self._started().run_domain(
                uuid,
                connection,
                functools.partial(_times_ns, connection, uuid),
            )
        except base.HypervisorUnavailable as error:
            if _does_not_run(error):
                return None
            raise

    def host_time(self) -> base.HostTime:
        connection = self._current()
        return self._started().run(
            'first domain',
            connection,
            lambda: base.HostTime(
                int(connection.getInfo()[2]),
                int(connection.lookupByID(0).getCPUStats(True)[0]['cpu_time']),
            ),
        )

    def check_changes(self) -> None:
        """Report every domain whose vCPUs or definition have changed."""
        connection = self._connection
        current = connection.current if connection is not None else None
        if current is None:
            return
        for uuid, domain in self._running(current):
            with self._lock:
                known = self._known.get(uuid)
                # What has changed already is not read: an event was sent.
                if known is None or not self._is_current(uuid, known):
                    continue
            if known.domain_id != domain.ID():
                continue
            try:
                now = self._read(current, uuid, domain)
            except base.HypervisorUnavailable as error:
                if not self.connected:
                    raise
                # One that hangs holds up no other's check.
                LOG.debug('instance %s is not checked: %s', uuid, error)
                continue
            if now is not None and now != (known.text, known.vcpus):
                self._event(uuid)

    # Inspection of one domain

    def _inspect(
        self,
        connection: libvirt.virConnect,
        uuid: str,
        domain: libvirt.virDomain,
        scan: frozenset[int],
        stamp: int,
    ) -> _Known | None:
        read = self._read(connection, uuid, domain)
        domid = domain.ID()
        if read is None or domid <= 0:
            # It has just ended: an event follows.
            return None
        text, vcpus = read
        definition = definitions.parse(text)
        seen = base.Domain(
            uuid=uuid,
            name=domain.name(),
            pid=vcpu_ids.encode(domid),
            vcpus=tuple(
                base.Vcpu(
                    index,
                    vcpu_ids.encode(domid, index),
                    definition.pinned_cpus(index, scan),
                )
                for index in range(vcpus)
            ),
            extra_specs=definition.metadata.extra_specs,
            metadata_problem=definition.metadata.problem,
            interfaces=_interfaces(definition.interfaces),
            disks=definition.disks,
            server=definition.metadata.server,
        )
        return _Known(stamp, domid, text, vcpus, seen)

    def _read(
        self,
        connection: libvirt.virConnect,
        uuid: str,
        domain: libvirt.virDomain,
    ) -> tuple[str, int] | None:
        """Return a running domain's definition and its number of vCPUs."""
        try:
            return self._started().run_domain(
                uuid,
                connection,
                lambda: (domain.XMLDesc(), domain.vcpusFlags(_LIVE)),
            )
        except base.HypervisorUnavailable as error:
            if _does_not_run(error):
                return None
            raise


def _does_not_run(error: base.HypervisorUnavailable) -> bool:
    """Return whether a domain that is defined does not run any more."""
    cause = error.__cause__
    return (
        isinstance(cause, libvirt.libvirtError)
        and cause.get_error_code() == libvirt.VIR_ERR_OPERATION_INVALID
    )


def _interfaces(found: Iterable[base.Interface]) -> tuple[base.Interface, ...]:
    """Return a domain's interfaces under all of their names.

    libvirt has the name of the emulated card of an HVM guest. A guest with
    drivers for Xen uses netback's instead.
    """
    return tuple(
        dataclasses.replace(one, device=device)
        for one in found
        for device in dict.fromkeys(
            (one.device.removesuffix(_EMULATED), one.device)
        )
    )


def _count(
    connection: libvirt.virConnect, instance: base.Domain
) -> dict[str, base.DiskCounters]:
    """Return an instance's counters by disk.

    Disks without counters, such as those of a process of QEMU, are left out.
    """
    domain = connection.lookupByUUIDString(instance.uuid)
    counted = {}
    for name in instance.disks:
        try:
            reads, _, writes, _, _ = domain.blockStats(name)
        except libvirt.libvirtError as error:
            if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                raise
            LOG.debug('disk %s has no counters: %s', name, error)
            continue
        if reads >= 0 and writes >= 0:
            counted[name] = base.DiskCounters(reads, writes)
    return counted


def _times_ns(connection: libvirt.virConnect, uuid: str) -> tuple[int, ...]:
    # A list of vCPUs: libvirt's driver for Xen has none of the host's CPUs.
    return tuple(
        int(one['cpu_time'])
        for one in connection.lookupByUUIDString(uuid).getCPUStats(False)
    )

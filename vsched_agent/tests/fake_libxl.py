# SPDX-License-Identifier: Apache-2.0

"""libvirt's driver for Xen, as far as the agent's own driver asks it.

It passes the same suite as the real one, which runs in the lab node.
"""

from collections.abc import Mapping
import typing as ty
from xml.sax import saxutils

import fixtures
import libvirt

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.libvirt import connection as libvirt_connection
from vsched_agent.hypervisor.libvirt import metadata
from vsched_agent.tests import guest_calls

_DOMAIN = """\
<domain type='xen' id='%(domid)d'>
  <name>%(name)s</name><uuid>%(uuid)s</uuid>
  <metadata>%(metadata)s</metadata>
  <vcpu placement='static' current='%(vcpus)d'>%(max_vcpus)d</vcpu>
  <cputune>%(pins)s</cputune>
  <devices>%(disks)s
    <interface type='bridge'><target dev='%(device)s'/></interface>
  </devices>
</domain>
"""


class Failure(libvirt.libvirtError):
    """An error of libvirt with a code."""

    def __init__(self, code: int) -> None:
        super().__init__('error %d' % code)
        self.code = code

    def get_error_code(self) -> int:
        return self.code


class FakeDomain:
    """A domain, and any handle of it."""

    def __init__(
        self,
        uuid: str,
        domid: int,
        vcpus: int,
        pins: Mapping[int, frozenset[int]],
        disks: tuple[str, ...],
    ) -> None:
        self.uuid = uuid
        self.domid = domid
        self.vcpus = vcpus
        self.pins = dict(pins)
        self.disks = disks
        self.specs = ''
        self.server = ''
        #: The name of its interface; None for the default of a PV guest.
        self.device: str | None = None
        self.reads = 0
        self.asked = 0
        self.error: Exception | None = None
        #: CPU time by index of the vCPU; the others have 0.
        self.times_ns: dict[int, int] = {}

    def UUIDString(self) -> str:
        return self.uuid

    def name(self) -> str:
        return 'instance <%s>' % self.uuid[:8]

    def ID(self) -> int:
        return self.domid

    def XMLDesc(self) -> str:
        self.asked += 1
        if self.error:
            raise self.error
        return _DOMAIN % {
            'domid': self.domid,
            'device': self.device or 'vif%d.0' % self.domid,
            'name': saxutils.escape(self.name()),
            'uuid': self.uuid,
            'metadata': self.specs + self.server,
            'vcpus': self.vcpus,
            'max_vcpus': max(2, self.vcpus),
            'pins': ''.join(
                '<vcpupin vcpu="%d" cpuset="%s"/>'
                % (index, ','.join(map(str, cpus)))
                for index, cpus in self.pins.items()
            ),
            'disks': ''.join(
                '<disk type="block"><target dev="%s" bus="xen"/></disk>' % one
                for one in self.disks
            ),
        }

    def vcpusFlags(self, flags: int) -> int:
        if self.domid < 0:
            raise Failure(libvirt.VIR_ERR_OPERATION_INVALID)
        return self.vcpus

    def blockStats(self, disk: str) -> tuple[int, int, int, int, int]:
        if disk not in self.disks:
            raise Failure(libvirt.VIR_ERR_OPERATION_FAILED)
        return self.reads, self.reads * 4096, 0, 0, -1

    def getCPUStats(self, total: bool) -> list[dict[str, int]]:
        if self.error:
            raise self.error
        if self.domid < 0:
            raise Failure(libvirt.VIR_ERR_OPERATION_INVALID)
        if total:
            return [{'cpu_time': sum(self.times_ns.values())}]
        return [
            {'cpu_time': self.times_ns.get(index, 0)}
            for index in range(max(2, self.vcpus))
        ]


class FakeConnection:
    """Stands for libvirt_connection.Connection and for libvirt's own."""

    def __init__(self, daemon: 'FakeLibxl', *arguments: ty.Any) -> None:
        self.daemon = daemon
        self.on_event, self.on_state = arguments[-2:]
        self.current: FakeConnection | None = None

    def start(self) -> None:
        self.daemon.connections.append(self)
        if self.daemon.reachable:
            self.current = self
            self.on_state(True)

    def stop(self) -> None:
        self.current = None
        self.daemon.connections.remove(self)

    def lost(self, connection: ty.Any) -> None:
        self.current = None

    def isAlive(self) -> bool:
        return self.daemon.reachable

    def getInfo(self) -> list[ty.Any]:
        return ['x86_64', 4096, 2, 2000, 1, 1, 2, 1]

    def listAllDomains(self, flags: int) -> list[FakeDomain]:
        return list(self.daemon.domains.values())

    def lookupByID(self, domid: int) -> FakeDomain:
        for one in self.daemon.domains.values():
            if one.domid == domid:
                return one
        raise Failure(libvirt.VIR_ERR_NO_DOMAIN)

    def lookupByUUIDString(self, uuid: str) -> FakeDomain:
        if uuid not in self.daemon.domains:
            raise Failure(libvirt.VIR_ERR_NO_DOMAIN)
        return self.daemon.domains[uuid]


class FakeLibxl(fixtures.Fixture):
    """The daemon: what it runs, and which events it has."""

    #: Of the first domain, as libvirt lists it.
    DOM0 = '00000000-0000-0000-0000-000000000000'

    def __init__(self) -> None:
        super().__init__()
        self.domains: dict[str, FakeDomain] = {
            self.DOM0: FakeDomain(self.DOM0, 0, 1, {}, ())
        }
        self.connections: list[FakeConnection] = []
        self.reachable = True
        self._domid = 0

    def _setUp(self) -> None:
        self.useFixture(
            fixtures.MockPatchObject(
                libvirt_connection,
                'Connection',
                lambda *arguments: FakeConnection(self, *arguments),
            )
        )

    def start_domain(
        self,
        uuid: str,
        vcpus: int = 1,
        extra_specs: Mapping[str, str] | None = None,
        pins: Mapping[int, frozenset[int]] | None = None,
        disks: tuple[str, ...] = (),
    ) -> FakeDomain:
        self._domid += 1
        domain = FakeDomain(uuid, self._domid, vcpus, pins or {}, disks)
        self.domains[uuid] = domain
        if extra_specs:
            self.set_extra_specs(uuid, extra_specs)
        self.event(uuid)
        return domain

    def stop_domain(self, uuid: str) -> None:
        # Handles that were given out have the number still.
        self.domains.pop(uuid).domid = -1
        self.event(uuid)

    def reboot_domain(self, uuid: str) -> None:
        """Another domain takes its place."""
        self._domid += 1
        self.domains[uuid].domid = self._domid
        self.event(uuid)

    def set_extra_specs(self, uuid: str, specs: Mapping[str, str]) -> None:
        self.domains[uuid].specs = _qualified(
            guest_calls.plain_metadata(specs), metadata.PLAIN_NS
        )
        self.event(uuid)

    def set_server(self, uuid: str, server: base.Server) -> None:
        self.domains[uuid].server = _qualified(
            guest_calls.nova_metadata(server), metadata.NOVA_NS
        )
        self.event(uuid)

    def event(self, uuid: str) -> None:
        for one in self.connections:
            if one.current is not None:
                one.on_event(uuid)

    def set_reachable(self, reachable: bool) -> None:
        self.reachable = reachable
        for one in self.connections:
            one.current = one if reachable else None
            one.on_state(reachable)


def _qualified(element: str, namespace: str) -> str:
    """Give an element its namespace, as libvirt does."""
    tag, rest = element[1:].replace('>', ' >', 1).split(' ', 1)
    return '<%s xmlns="%s" %s' % (tag, namespace, rest)

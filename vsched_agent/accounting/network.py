# SPDX-License-Identifier: Apache-2.0

"""Packets of instances, counted by the host's ends of their interfaces.

``/proc/net/dev`` has all devices of a network namespace in one read, from
the host's side: what a tap received its instance sent. Devices are read in
the namespace of the instance's process, which may differ from the agent's.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import os
import typing as ty

from oslo_log import log as logging

from vsched_agent.accounting import counters
from vsched_agent.hypervisor import base

LOG = logging.getLogger(__name__)

# Packets in /proc/net/dev: fields after the name.
_RX, _TX = 1, 9


class Packets(ty.NamedTuple):
    """Packets from the instance's point of view."""

    rx: int
    tx: int


class PacketMeter:
    """Reads how many packets instances moved between two passes.

    Used by one thread at a time.

    :param proc: where procfs is.
    """

    def __init__(self, proc: str = '/proc') -> None:
        self._proc = proc
        self._namespaces: dict[tuple[str, int], int | None] = {}
        self._last: dict[tuple[str, str], Packets] = {}

    def moved(self, domains: Iterable[base.Domain]) -> dict[str, Packets]:
        """Return the packets since the last call, by instance.

        A device counts from its first reading. A counter that steps back
        belongs to another device, and counts from there.

        :returns: all instances that have interfaces.
        """
        namespaces: dict[tuple[str, int], int | None] = {}
        members: dict[int | None, list[base.Domain]] = {}
        for domain in domains:
            if domain.interfaces:
                process = domain.uuid, domain.pid
                namespaces[process] = (
                    self._namespaces[process]
                    if process in self._namespaces
                    else self._namespace(domain.pid)
                )
                members.setdefault(namespaces[process], []).append(domain)
        self._namespaces = namespaces
        last, self._last = self._last, {}
        found: dict[str, Packets] = {}
        for namespace, there in members.items():
            devices = self._read(namespace, there)
            for domain in there:
                found[domain.uuid] = self._of(domain, devices, last)
        return found

    def checkpoint(self) -> list[list[ty.Any]]:
        """Return the counters of the last call, as JSON types."""
        return [[*key, *packets] for key, packets in self._last.items()]

    def resume(self, checkpoint: Iterable[ty.Any]) -> None:
        """Continue from what :meth:`checkpoint` returned.

        :raises ValueError, TypeError: when it is malformed.
        """
        resumed = {}
        for uuid, device, rx, tx in checkpoint:
            resumed[str(uuid), str(device)] = Packets(int(rx), int(tx))
        self._last = resumed

    def _of(
        self,
        domain: base.Domain,
        devices: Mapping[str, Packets] | None,
        last: Mapping[tuple[str, str], Packets],
    ) -> Packets:
        rx = tx = 0
        for interface in domain.interfaces:
            key = domain.uuid, interface.device
            before = last.get(key)
            if devices is None:
                # Reading failed: the next pass covers both intervals.
                if before is not None:
                    self._last[key] = before
                continue
            now = devices.get(interface.device)
            if now is None:
                continue
            self._last[key] = now
            if before is None:
                continue
            in_, out = (
                counters.grown(*pair) for pair in zip(before, now, strict=True)
            )
            if not interface.same_view:
                in_, out = out, in_
            rx, tx = rx + in_, tx + out
        return Packets(rx, tx)

    def _namespace(self, pid: int) -> int | None:
        """Return a process's network namespace; None for the agent's own.

        One that is not visible is taken for the agent's.
        """
        try:
            there, here = (
                os.stat('%s/%s/ns/net' % (self._proc, one)).st_ino
                for one in (pid, 'self')
            )
        except OSError:
            return None
        return None if there == here else there

    def _read(
        self, namespace: int | None, members: Iterable[base.Domain]
    ) -> Mapping[str, Packets] | None:
        names = {
            interface.device
            for domain in members
            for interface in domain.interfaces
        }
        if namespace is None:
            return self._devices('%s/net/dev' % self._proc, names)
        for domain in members:
            # Through any process of that namespace.
            found = self._devices(
                '%s/%d/net/dev' % (self._proc, domain.pid), names
            )
            if found is not None:
                return found
        return None

    def _devices(
        self, path: str, names: set[str]
    ) -> Mapping[str, Packets] | None:
        """Return the devices' packets; None when reading fails."""
        found = {}
        try:
            with open(path, encoding='ascii', errors='replace') as file:
                for line in file:
                    name, colon, rest = line.partition(':')
                    name = name.strip()
                    if colon and name in names:
                        fields = rest.split()
                        found[name] = Packets(
                            int(fields[_RX]), int(fields[_TX])
                        )
        except (OSError, ValueError, IndexError) as problem:
            LOG.error('%s: %s', path, problem)
            return None
        return found

# SPDX-License-Identifier: Apache-2.0

"""Guests of the lab node with Xen, for ``benchmarks.xen_inside``."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import time
import typing as ty

import libvirt

from vsched_agent.enforcement import base
from vsched_agent.hypervisor.xen import vcpu_ids
from vsched_agent.tests.functional.xen import xen_case

#: Guests boot in emulation.
READY_S = 240.0


class Sample(ty.NamedTuple):
    """A reading of a guest's CPU time.

    :param at_s: when it was taken, by the clock of Xen, which is the first
        domain's.
    :param run_s: the CPU time of all vCPUs, as Xen counts it.
    """

    at_s: float
    run_s: float

    def share_since(self, before: 'Sample') -> float:
        """Return what the guest got between two samples, in CPUs."""
        return (self.run_s - before.run_s) / (self.at_s - before.at_s)


class Guest:
    """A guest that runs.

    :param handle: libvirt's.
    """

    def __init__(self, handle: libvirt.virDomain) -> None:
        self.handle = handle
        self.domid = int(handle.ID())

    def sample(self) -> Sample:
        """Read the CPU time; its moment is the middle of the reading."""
        before_s = time.monotonic()
        run_ns = self.handle.info()[4]
        return Sample((before_s + time.monotonic()) / 2, run_ns / 1e9)

    def targets(self, vcpus: int) -> list[base.Target]:
        """Return what a backend is told to enforce on."""
        return [
            base.Target(index, vcpu_ids.encode(self.domid, index))
            for index in range(vcpus)
        ]

    def has_online(self, count: int) -> bool:
        """Return whether the guest has taken all but ``count`` vCPUs off.

        Its kernel does that by a call of the hypervisor, which shows it: a
        vCPU that is not wanted but still in use is online.
        """
        lines = xen_case.run('xl', 'vcpu-list', str(self.domid)).splitlines()
        return sum('--p' not in line for line in lines[1:]) == count


@contextlib.contextmanager
def guest(
    connection: libvirt.virConnect, kind: str = 'pv', vcpus: int = 1
) -> Iterator[Guest]:
    """Run a guest that keeps all of its vCPUs busy.

    :param kind: of ``xen_case.KINDS``.
    """
    name, _, text = xen_case.definition(kind, vcpus, words='vsched.load=burn')
    handle = connection.createXML(text)
    try:
        wait_for(
            lambda: 'vsched-guest ready' in xen_case.console(name),
            'guest %s that is up' % kind,
        )
        yield Guest(handle)
    finally:
        handle.destroy()
        xen_case.console_path(name).unlink(missing_ok=True)


def wait_for(reached: Callable[[], ty.Any], what: str) -> float:
    """Wait until something is true.

    :returns: the seconds that it took.
    :raises TimeoutError: when it is not in :data:`READY_S`.
    """
    began_s = time.monotonic()
    while not reached():
        if time.monotonic() - began_s > READY_S:
            raise TimeoutError('no %s in %d s' % (what, READY_S))
        time.sleep(0.1)
    return time.monotonic() - began_s

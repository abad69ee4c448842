# SPDX-License-Identifier: Apache-2.0

"""Chooses what reads the usage of a hypervisor's instances and of its host.

Modules for Xen are imported where it is in use.
"""

from collections.abc import Callable
from collections.abc import Collection
import typing as ty

from vsched_agent.accounting import base
from vsched_agent.accounting import disk
from vsched_agent.accounting import host
from vsched_agent.accounting import qemu
from vsched_agent.hypervisor import base as hypervisor

#: By kind of hypervisor, what makes a reader of instances whose vCPUs are
#: threads.
READERS: dict[str, Callable[[], base.Reader]] = {'qemu': qemu.ProcessReader}


class Sources(ty.NamedTuple):
    """What reads the usage of instances and of their host.

    :param disk_counters: see :meth:`hypervisor.Hypervisor.disk_counters`.
    :param disks_answer: whether disk counters cost as much as an answer of
        the instance's process does.
    """

    reader: base.Reader
    host: base.CpuMeter
    disk_counters: Callable[[Collection[str]], disk.Counters]
    disks_answer: bool


def sources_of(
    driver: hypervisor.Hypervisor, irq_time: bool = False
) -> Sources:
    """Make what reads the usage of a driver's instances and of its host.

    :param irq_time: whether the kernel counts interrupts separately.
    :raises ValueError: when there is no reader of its instances.
    """
    if isinstance(driver, hypervisor.DomainTimes):
        from vsched_agent.accounting.xen import host as xen_host
        from vsched_agent.accounting.xen import reader as xen_reader

        reader = xen_reader.DomainReader(driver)
        return Sources(
            reader,
            xen_host.FirstDomainMeter(driver),
            reader.disk_counters,
            False,
        )
    return Sources(
        of_kind(driver.kind),
        host.HostMeter(irq_time=irq_time),
        driver.disk_counters,
        True,
    )


def of_kind(kind: str) -> base.Reader:
    """Make a reader of instances whose vCPUs are threads.

    :param kind: see :class:`vsched_agent.hypervisor.base.Hypervisor`.
    :raises ValueError: when there is no reader of its instances.
    """
    if kind not in READERS:
        raise ValueError(
            'CPU time of instances can be read of %s, not of %s'
            % (', '.join(READERS), kind)
        )
    return READERS[kind]()

# SPDX-License-Identifier: Apache-2.0

"""CPUs of a virtual machine, kept from idling while something is measured.

A virtual CPU that idles is given away by the machine under it, and comes back
when that likes. What is woken up on it comes late and pays for the way back,
so that a request's price is that of the machine next door. Bare metal keeps
its CPUs, and nothing is done there.
"""

from collections.abc import Iterator
import contextlib
import os
import pathlib

from vsched_agent.profiling.error import hogs

#: Where x86 lists, among a CPU's features, a hypervisor below.
CPUINFO = '/proc/cpuinfo'


def is_virtual(cpuinfo: str = CPUINFO) -> bool:
    """Whether this machine is a virtual one, by what its CPUs say."""
    for line in pathlib.Path(cpuinfo).read_text('utf-8').splitlines():
        name, _, value = line.partition(':')
        if name.strip() == 'flags':
            return 'hypervisor' in value.split()
    return False


@contextlib.contextmanager
def awake() -> Iterator[None]:
    """Keep all CPUs from idling, by hogs that give way to all others.

    SCHED_IDLE (sched(7)): anything that becomes runnable takes the CPU from
    them at once.

    :raises RuntimeError: when one does not start.
    """
    with contextlib.ExitStack() as stack:
        for cpu in sorted(os.sched_getaffinity(0)):
            hog = stack.enter_context(hogs.Hog())
            os.sched_setscheduler(hog.pid, os.SCHED_IDLE, os.sched_param(0))
            os.sched_setaffinity(hog.pid, {cpu})
        yield

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

from vsched_agent.profiling import hogs

#: Where x86 tells, as a CPU's feature, that a hypervisor is below.
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

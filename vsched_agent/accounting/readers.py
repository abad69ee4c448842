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

"""Which reader goes with which hypervisor."""

from vsched_agent.accounting import processes
from vsched_agent.accounting import readings


def of_kind(kind: str) -> readings.Reader:
    """A reader for one kind of hypervisor.

    :param kind: see :class:`vsched_agent.hypervisor.base.Hypervisor`.
    :raises ValueError: when nobody knows how to read its instances.
    """
    if kind == 'qemu':
        return processes.ProcessReader()
    if kind in ('simulated', 'fake'):
        # All of their threads are in one process.
        return processes.ProcessReader(own_processes=False)
    raise ValueError(
        'CPU time of instances can be read of qemu, not of %s' % kind)

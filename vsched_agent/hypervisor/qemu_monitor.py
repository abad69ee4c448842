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

"""What QEMU itself tells, through libvirt, of the threads of its vCPUs."""

import json
import typing as ty

import libvirt
import libvirt_qemu


class UnexpectedAnswer(ValueError):
    """QEMU said something that is no answer to the question."""


def vcpus(domain: libvirt.virDomain) -> dict[int, int]:
    """Ask for the thread of each vCPU that is plugged in.

    May last as long as QEMU likes. libvirt marks the domain as tainted
    (custom-monitor), which changes nothing for it.

    :returns: threads by the number of the vCPU.
    :raises UnexpectedAnswer: when the answer can not be understood.
    :raises libvirt.libvirtError: when there is none.
    """
    return parse_vcpus(libvirt_qemu.qemuMonitorCommand(
        domain, '{"execute": "query-cpus-fast"}', 0))


def parse_vcpus(text: str) -> dict[int, int]:
    """Read the answer to ``query-cpus-fast``.

    :raises UnexpectedAnswer: when it is none.
    """
    try:
        answer: ty.Any = json.loads(text)
        return {int(cpu['cpu-index']): int(cpu['thread-id'])
                for cpu in answer['return']}
    except (ValueError, KeyError, TypeError) as error:
        raise UnexpectedAnswer('%s: %s' % (
            type(error).__name__, ascii(text)[:200])) from None

# SPDX-License-Identifier: Apache-2.0

"""Ask QEMU's monitor, through libvirt, for the threads of vCPUs."""

import libvirt
import libvirt_qemu

from vsched_agent.hypervisor import answers

#: The highest thread id of Linux (PID_MAX_LIMIT).
_MOST_TID = 4 * 1024 * 1024


class UnexpectedAnswer(ValueError):
    """QEMU's answer is invalid."""


def vcpus(domain: libvirt.virDomain) -> dict[int, int]:
    """Return the thread of each plugged vCPU.

    It has no timeout. libvirt marks the domain as tainted (custom-monitor),
    which has no other effect.

    :returns: threads by the number of the vCPU.
    :raises UnexpectedAnswer: when the answer is invalid.
    :raises libvirt.libvirtError: when there is none.
    """
    try:
        answer = libvirt_qemu.qemuMonitorCommand(
            domain, '{"execute": "query-cpus-fast"}', 0
        )
    except UnicodeDecodeError as error:
        raise UnexpectedAnswer('no text: %s' % error.reason) from None
    return parse_vcpus(answer)


def parse_vcpus(text: str) -> dict[int, int]:
    """Read the answer to ``query-cpus-fast``.

    :raises UnexpectedAnswer: when it is none.
    """
    found: dict[int, int] = {}
    try:
        for cpu in map(
            answers.mapping,
            answers.items(answers.returned(text), answers.MAX_VCPUS),
        ):
            index = answers.integer(
                cpu.get('cpu-index'), 0, answers.MAX_VCPUS - 1
            )
            if index in found:
                raise answers.MalformedAnswer('vCPU %d comes twice' % index)
            found[index] = answers.integer(cpu.get('thread-id'), 1, _MOST_TID)
    except answers.MalformedAnswer as problem:
        raise UnexpectedAnswer(str(problem)) from None
    return found

# SPDX-License-Identifier: Apache-2.0

"""What tests write into a domain's metadata and read in its guest."""

from collections.abc import Mapping
import os
import time
from xml.etree import ElementTree

import libvirt

from vsched_agent.hypervisor import base
from vsched_agent.profiling.guest import commands

#: The prefix of the element that an operator may set.
PLAIN_KEY = 'vsched'
_CLOCK_SOURCE = (
    '/sys/devices/system/clocksource/clocksource0/current_clocksource'
)


def plain_metadata(extra_specs: Mapping[str, str]) -> str:
    """Return the element for libvirt's setMetadata.

    :param extra_specs: full names to text.
    :returns: the element without prefix and namespace: libvirt adds them.
    """
    root = ElementTree.Element('reservation')
    for name, text in extra_specs.items():
        ElementTree.SubElement(root, 'extra_spec', name=name).text = text
    return ElementTree.tostring(root, encoding='unicode')


def nova_metadata(server: base.Server) -> str:
    """Return what Nova writes of a server, likewise."""
    root = ElementTree.Element('instance')
    ElementTree.SubElement(root, 'name').text = server.name
    ElementTree.SubElement(root, 'flavor', name=server.flavor_name or '')
    owner = ElementTree.SubElement(root, 'owner')
    ElementTree.SubElement(owner, 'user', uuid='u').text = 'alice'
    ElementTree.SubElement(
        owner, 'project', uuid=server.project_id or ''
    ).text = 'web'
    return ElementTree.tostring(root, encoding='unicode')


def clock_source(
    domain: libvirt.virDomain, ready_timeout_s: float = 30.0
) -> str:
    """Return the name of the clock source that a guest's kernel uses.

    A kernel begins with ``tsc-early``, and decides about a second after the
    start of its devices. A guest may be up before; that is waited for.

    :param ready_timeout_s: longest wait for the guest's agent to be there,
        and for the decision.
    :raises commands.CommandFailed: when the guest does not tell.
    """
    ends_s = time.monotonic() + ready_timeout_s
    while True:
        name = (
            commands.GuestCommand(
                domain, ('/bin/cat', _CLOCK_SOURCE), ready_timeout_s
            )
            .wait(10.0)
            .strip()
        )
        if not name.endswith('-early') or time.monotonic() > ends_s:
            return name
        time.sleep(0.2)


def steal(
    domain: libvirt.virDomain, timeout_s: float = 30.0
) -> tuple[float, float]:
    """Return a guest's uptime and the steal time of all its vCPUs so far.

    Both in seconds and read by the guest at once: however late it answers,
    what was stolen between two calls is of the time between its uptimes.

    :param timeout_s: longest wait for the guest's agent, and for the answer.
    :raises commands.CommandFailed: when the guest does not tell.
    """
    text = commands.GuestCommand(
        domain, ('/bin/cat', '/proc/uptime', '/proc/stat'), timeout_s
    ).wait(timeout_s)
    uptime, stat, *_ = text.splitlines()
    # proc(5): the eighth figure behind the name, in clock ticks.
    return (
        float(uptime.split()[0]),
        int(stat.split()[8]) / os.sysconf('SC_CLK_TCK'),
    )

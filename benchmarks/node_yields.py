# SPDX-License-Identifier: Apache-2.0

"""Whether KVM's counters of yields show vCPUs that wait for each other.

KVM counts a directed yield when a guest asks for one: its kernel has
interrupted several vCPUs at once and waits for one of them that is not
running. The guest here does this all the time (it changes a static key, which
has to reach all CPUs), first alone on the CPUs and then beside another guest
with as many busy vCPUs.
"""

import tempfile
import time

from vsched_agent.host import schedstat
from vsched_agent.hypervisor.libvirt import guest_agent
from vsched_agent.tests import fixtures
from vsched_agent.tests.functional import agent_guests

_READY_S = 240.0
#: As busy vCPUs as the node has CPUs.
_VCPUS = 2
#: Each write stops all CPUs of the guest for some steps.
_SWITCH = '/proc/sys/kernel/sched_schedstats'
_LOOP = 'while :; do echo 1 >%s; echo 0 >%s; done' % (_SWITCH, _SWITCH)


def measure(seconds: float) -> dict[str, float]:
    """Return yields per time slice and the share of waiting, of one vCPU.

    :param seconds: with each of both loads.
    """
    found = {}
    channel = guest_agent.GuestAgentChannel(fixtures.URI)
    channel.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            guests = [
                agent_guests.Vm(
                    folder,
                    load='burn',
                    virt_type='kvm',
                    vcpus=_VCPUS,
                    ready_timeout_s=_READY_S,
                )
                for _ in range(2)
            ]
            try:
                agent_guests.start_in_turn(guests)
                guests[0].execute('/bin/sh', '-c', _LOOP, patience_s=_READY_S)
                guests[1].handle.suspend()
                for name in ('alone', 'contended'):
                    yields, waits = _watch(guests[0], channel, seconds)
                    found['yields_' + name] = yields
                    found['waits_' + name] = waits
                    if name == 'alone':
                        guests[1].handle.resume()
            finally:
                agent_guests.stop_all(guests)
    finally:
        channel.stop()
    return found


def _watch(
    vm: agent_guests.Vm, channel: guest_agent.GuestAgentChannel, seconds: float
) -> tuple[float, float]:
    """Return yields per time slice and the part of its time that it waits.

    :raises RuntimeError: when KVM has no such counters.
    """
    before = _counts(vm, channel)
    time.sleep(seconds)
    after = _counts(vm, channel)
    yields, slices, run_ns, wait_ns = (
        late - early for early, late in zip(before, after, strict=True)
    )
    return yields / max(1, slices), wait_ns / max(1, run_ns + wait_ns)


def _counts(
    vm: agent_guests.Vm, channel: guest_agent.GuestAgentChannel
) -> tuple[int, int, int, int]:
    """Return yields, time slices, run and waiting time of all its vCPUs."""
    yields = channel.yields([vm.uuid]).get(vm.uuid)
    if not yields:
        raise RuntimeError('KVM does not count yields here')
    stats = [schedstat.read(tid) for tid in vm.vcpu_tids]
    return (
        sum(yields.values()),
        sum(one.timeslices for one in stats),
        sum(one.run_ns for one in stats),
        sum(one.wait_ns for one in stats),
    )

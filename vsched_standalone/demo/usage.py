# SPDX-License-Identifier: Apache-2.0

"""The CPU time of a simulated host, shared by its instances."""

from collections.abc import Collection

from vsched_lib.contract import messages
from vsched_lib.model import executions
from vsched_standalone.demo import instance as instances

#: The part of its CPUs that a host uses for itself.
_OWN = 0.015


def account(
    cpus: int,
    members: Collection[instances.Instance],
    at: float,
    interval_us: int,
) -> tuple[list[messages.UsageSample], messages.HostUsage]:
    """Return the CPU time of instances and of their host in an interval.

    :param cpus: of the host.
    :param at: the end of the interval.
    """
    runs = {one.uuid: one.run(at, interval_us) for one in members}
    whole_us = cpus * interval_us
    own_us = round(_OWN * whole_us)
    direct_us = sum(one.direct_us for one in runs.values())
    shared_us = sum(one.shared_us for one in runs.values())
    reserved_us = sum(
        one.guest_us for one in runs.values() if one.reserved_us is not None
    )
    free_us = max(0, whole_us - own_us - direct_us - shared_us - reserved_us)
    others_us = sum(
        one.guest_us for one in runs.values() if one.reserved_us is None
    )
    # Without a reservation an instance has its part of what is left.
    part = min(1.0, free_us / others_us) if others_us else 1.0
    samples = []
    guest_us = 0
    for uuid_, run in runs.items():
        got_us = (
            int(run.guest_us * part)
            if run.reserved_us is None
            else run.guest_us
        )
        guest_us += got_us
        samples.append(_sample(uuid_, at, interval_us, run, got_us))
    used_us = own_us + direct_us + shared_us + guest_us
    return samples, messages.HostUsage(
        at=at,
        interval_us=interval_us,
        cpus=cpus,
        idle_us=max(0, whole_us - used_us),
        steal_us=0,
        irq_us=shared_us // 2,
        guest_us=guest_us,
        direct_us=direct_us,
        shared_us=shared_us,
        own_us=own_us,
    )


def _sample(
    uuid_: str,
    at: float,
    interval_us: int,
    run: instances.Interval,
    got_us: int,
) -> messages.UsageSample:
    wakeups = run.packets + run.requests
    return messages.UsageSample(
        instance_uuid=uuid_,
        at=at,
        interval_us=interval_us,
        guest_us=got_us,
        wait_us=max(0, run.desired_us - got_us),
        promised_us=run.reserved_us,
        direct_us=run.direct_us,
        direct_wait_us=wakeups * 3,
        shared_us=run.shared_us,
        wakeups=wakeups,
        net_rx_packets=run.packets,
        net_tx_packets=run.packets,
        disk_read_requests=run.requests // 2,
        disk_write_requests=run.requests - run.requests // 2,
        executions=executions.Counts(
            executions=wakeups + interval_us // 10_000,
            emulator_wakeups=interval_us // 100_000,
            emulator_wait_us=interval_us // 50_000,
            iothread_wakeups=run.requests,
            iothread_wait_us=run.requests * 3,
            vhost_wakeups=run.packets,
            vhost_wait_us=run.packets * 3,
        ),
    )

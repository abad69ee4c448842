# SPDX-License-Identifier: Apache-2.0

"""Accounts the host's CPU time to instances and the host, pass by pass.

The CPU time of instances' threads is read first, then that of all CPUs, then
packets and requests. The host's own time is the remainder of the CPUs' time,
so nothing is lost; a part of it is attributed to instances.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from fractions import Fraction
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.accounting import base as readings
from vsched_agent.accounting import disk as request_meter
from vsched_agent.accounting import network as packet_meter
from vsched_agent.accounting import readers
from vsched_agent.accounting import wall_clock
from vsched_agent.hypervisor import base
from vsched_lib.contract import messages
from vsched_lib.model import executions
from vsched_lib import problem_log

LOG = logging.getLogger(__name__)

Role = readings.Role

#: Longest time between two agents that the first samples of the second one
#: cover, in seconds: samples count in the minute and the hour of their end.
RESUME_S = 900


class UsageMeter:
    """Measures the CPU time of instances and the host between passes.

    Used by one thread at a time.

    :param reader: for the kind of hypervisor in use.
    :param host: reads the CPUs' time; None leaves the host out.
    :param packets: reads the interfaces' packets; None leaves them out.
    :param requests: reads the disks' requests; None leaves them out.
    :param boot_id: of the running kernel; without it nothing is resumed.
    """

    def __init__(
        self,
        reader: readings.Reader,
        host: readings.CpuMeter | None = None,
        packets: packet_meter.PacketMeter | None = None,
        requests: request_meter.RequestMeter | None = None,
        boot_id: str = '',
    ) -> None:
        self._reader = reader
        self._problems = problem_log.ProblemLog(LOG)
        self._host = host
        self._packets = packets
        self._requests = requests
        self._boot_id = boot_id
        self._read_ns = 0
        #: Readings of the last pass by instance, except those that it read
        #: for the first time.
        self.readings: Mapping[str, readings.Reading] = {}
        #: The host's usage of that pass; None after the first.
        self.host: messages.HostUsage | None = None

    def sample(
        self, domains: Sequence[base.Domain], reserved: Mapping[str, Fraction]
    ) -> list[messages.UsageSample]:
        """Read all counters and return what was used since the last call.

        An instance that is read for the first time has no sample before the
        next call.

        :param domains: every running instance.
        :param reserved: by instance, the CPUs reserved for it since the
            last call: ΣQ/P over its vCPUs. Left out: no reservation.
        :returns: a sample for each instance that was read before.
        """
        found: dict[str, readings.Reading] = {}
        for domain in domains:
            try:
                reading = self._reader.read(domain)
            except Exception as error:
                self._problems.failed(
                    domain.uuid,
                    error,
                    '%s: reading its CPU time failed',
                    domain.name,
                )
                continue
            if reading is not None:
                found[domain.uuid] = reading
        self._reader.keep({one.uuid for one in domains})
        self.readings = found
        self._read_ns = time.monotonic_ns()
        # As soon after the instances as possible: what runs in between
        # counts as the host's own.
        total = None if self._host is None else self._host.read()
        ahead_ns = wall_clock.offset_ns()
        samples = [
            _sample(one, reserved.get(one.instance_uuid), ahead_ns)
            for one in found.values()
        ]
        self._count_events(domains, samples)
        if self._host is not None:
            if total is None:
                self.host = None
                self._host.missed(samples)
            else:
                self.host = self._host.account(total, samples)
        return samples

    def checkpoint(self) -> dict[str, ty.Any]:
        """Return all counters of the last call of :meth:`sample`.

        :returns: JSON types.
        """
        return {
            'boot_id': self._boot_id,
            'read_ns': self._read_ns,
            'reader': self._reader.checkpoint(),
            'host': self._host and self._host.checkpoint(),
            'packets': self._packets.checkpoint() if self._packets else [],
            'requests': self._requests.checkpoint() if self._requests else {},
        }

    def resume(self, checkpoint: Mapping[str, ty.Any]) -> bool:
        """Continue from an earlier process's counters.

        The first samples then cover the time since, so that no usage is
        lost while no agent runs. Call it before the first :meth:`sample`.

        :param checkpoint: what :meth:`checkpoint` returned.
        :returns: False when it cannot be used: after a boot of the host,
            after more than :data:`RESUME_S`, or when it is malformed.
        """
        try:
            if not self._boot_id or checkpoint['boot_id'] != self._boot_id:
                return False
            if time.monotonic_ns() - checkpoint['read_ns'] > RESUME_S * 10**9:
                LOG.info(
                    'CPU time is counted from now on: the last agent has '
                    'counted it more than %d s ago',
                    RESUME_S,
                )
                return False
            self._reader.resume(checkpoint['reader'])
            if self._host is not None:
                self._host.resume(checkpoint['host'])
            if self._packets is not None:
                self._packets.resume(checkpoint['packets'])
            if self._requests is not None:
                self._requests.resume(checkpoint['requests'])
        except (AttributeError, LookupError, TypeError, ValueError) as problem:
            LOG.warning(
                'CPU time is counted from now on: the counters of '
                'the last agent cannot be read: %s',
                problem,
            )
            return False
        return True

    def close(self) -> None:
        """Forget everything, close all files and end all threads."""
        self._reader.close()
        if self._requests is not None:
            self._requests.close()
        self.readings = {}

    def _count_events(
        self,
        domains: Sequence[base.Domain],
        samples: list[messages.UsageSample],
    ) -> None:
        """Add packets and requests to samples."""
        moved = {} if self._packets is None else self._packets.moved(domains)
        done = (
            {}
            if self._requests is None
            else self._requests.moved(
                domains, {one.instance_uuid: one.wakeups for one in samples}
            )
        )
        for place, sample in enumerate(samples):
            packets = moved.get(sample.instance_uuid)
            requests = done.get(sample.instance_uuid)
            if packets or requests:
                net = packets or packet_meter.Packets(0, 0)
                disk = requests or request_meter.Requests(0, 0)
                samples[place] = dataclasses.replace(
                    sample,
                    net_rx_packets=net.rx,
                    net_tx_packets=net.tx,
                    disk_read_requests=disk.reads,
                    disk_write_requests=disk.writes,
                )


def meter_of(
    hypervisor: base.Hypervisor,
    irq_time: bool,
    boot_id: str = '',
    blocking: bool = False,
) -> UsageMeter:
    """Return a meter of a hypervisor's instances and of this host.

    :param irq_time: whether the kernel counts interrupts separately.
    :param boot_id: of the running kernel; without it nothing is resumed.
    :param blocking: poll all disks in each pass, and wait for the result.
    """
    sources = readers.sources_of(hypervisor, irq_time)
    if blocking or not sources.disks_answer:
        requests = request_meter.RequestMeter(
            request_meter.BlockingPoller(sources.disk_counters), 0
        )
    else:
        requests = request_meter.RequestMeter(
            request_meter.BackgroundPoller(sources.disk_counters)
        )
    return UsageMeter(
        sources.reader,
        sources.host,
        packet_meter.PacketMeter(),
        requests,
        boot_id,
    )


def _sample(
    reading: readings.Reading, reserved: Fraction | None, ahead_ns: int
) -> messages.UsageSample:
    interval_us = round(reading.interval_ns / 1000)
    guest_ns = 0
    wait_ns = dict.fromkeys(Role, 0)
    began = dict.fromkeys(Role, 0)
    for _, role, run_ns, waited_ns, timeslices in reading.threads:
        wait_ns[role] += waited_ns
        began[role] += timeslices
        if role is Role.VCPU:
            guest_ns += run_ns
    return messages.UsageSample(
        instance_uuid=reading.instance_uuid,
        at=wall_clock.seconds(reading.at_ns, ahead_ns),
        interval_us=interval_us,
        guest_us=round(guest_ns / 1000),
        wait_us=round(wait_ns[Role.VCPU] / 1000),
        direct_us=round(reading.direct_ns / 1000),
        direct_wait_us=round(
            (sum(wait_ns.values()) - wait_ns[Role.VCPU]) / 1000
        ),
        wakeups=sum(began.values()) - began[Role.VCPU],
        promised_us=None
        if reserved is None
        else round(reserved * interval_us),
        executions=executions.Counts(
            executions=began[Role.VCPU],
            emulator_wakeups=began[Role.EMULATOR],
            emulator_wait_us=round(wait_ns[Role.EMULATOR] / 1000),
            iothread_wakeups=began[Role.IOTHREAD],
            iothread_wait_us=round(wait_ns[Role.IOTHREAD] / 1000),
            vhost_wakeups=began[Role.VHOST],
            vhost_wait_us=round(wait_ns[Role.VHOST] / 1000),
        )
        if reading.vcpus_are_threads
        else None,
    )

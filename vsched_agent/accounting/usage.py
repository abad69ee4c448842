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

"""Who used the host's CPUs, a pass at a time.

What instances' threads used is read first, then what all CPUs did, then
what was moved. The host's own is what is left of the CPUs' time, so nothing
is lost; a part of it is given to instances.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from fractions import Fraction
import time

from vsched_agent.accounting import host as host_meter
from vsched_agent.accounting import packets as packet_meter
from vsched_agent.accounting import readers
from vsched_agent.accounting import readings
from vsched_agent.accounting import requests as request_meter
from vsched_agent.hypervisor import base
from vsched_lib.contract import messages

Role = readings.Role


class UsageMeter:
    """Tells how much CPU time instances and the host used between passes.

    Used by one thread at a time.

    :param reader: for the kind of hypervisor that there is.
    :param host: reads what the CPUs did; None leaves the host out.
    :param packets: reads what interfaces moved; None leaves them out.
    :param requests: reads what disks did; None leaves them out.
    """

    def __init__(self, reader: readings.Reader,
                 host: host_meter.HostMeter | None = None,
                 packets: packet_meter.PacketMeter | None = None,
                 requests: request_meter.RequestMeter | None = None,
                 ) -> None:
        self._reader = reader
        self._host = host
        self._packets = packets
        self._requests = requests
        #: What the last pass read, by instance; those that it read first
        #: are left out.
        self.readings: Mapping[str, readings.Reading] = {}
        #: What the host did in that pass; None after the first.
        self.host: messages.HostUsage | None = None

    def sample(self, domains: Sequence[base.Domain],
               promised: Mapping[str, Fraction],
               ) -> list[messages.UsageSample]:
        """Read all counters and tell what was used since the last call.

        An instance that is seen for the first time is only read, and is
        told of from the next call on.

        :param domains: every running instance.
        :param promised: by instance, the CPUs that it was promised in the
            meantime: ΣQ/P over its vCPUs. Left out: no reservation.
        :returns: a sample for each instance that was read before.
        """
        found: dict[str, readings.Reading] = {}
        for domain in domains:
            reading = self._reader.read(domain)
            if reading is not None:
                found[domain.uuid] = reading
        self._reader.keep({one.uuid for one in domains})
        self.readings = found
        # As soon after the instances as can be: what happens in between is
        # the host's own.
        told = None if self._host is None else self._host.read()
        samples = [_sample(one, promised.get(one.instance_uuid))
                   for one in found.values()]
        self._count_events(domains, samples)
        if self._host is not None:
            self.host = None if told is None else self._host.account(
                told, samples)
        return samples

    def close(self) -> None:
        """Forget everything, close all files and end all threads."""
        self._reader.close()
        if self._requests is not None:
            self._requests.close()
        self.readings = {}

    def _count_events(self, domains: Sequence[base.Domain],
                      samples: list[messages.UsageSample]) -> None:
        """Say in samples what was moved."""
        moved = {} if self._packets is None else self._packets.moved(domains)
        done = {} if self._requests is None else self._requests.moved(
            domains, {one.instance_uuid: one.wakeups for one in samples})
        for place, sample in enumerate(samples):
            packets = moved.get(sample.instance_uuid)
            requests = done.get(sample.instance_uuid)
            if packets or requests:
                net = packets or packet_meter.Packets(0, 0)
                disk = requests or request_meter.Requests(0, 0)
                samples[place] = dataclasses.replace(
                    sample, net_rx_packets=net.rx, net_tx_packets=net.tx,
                    disk_read_requests=disk.reads,
                    disk_write_requests=disk.writes)


def meter_of(hypervisor: base.Hypervisor, irq_time: bool,
             patient: bool = False) -> UsageMeter:
    """All that can be read of a hypervisor's instances and of this host.

    :param irq_time: whether the kernel keeps interrupts' time apart.
    :param patient: ask about all disks in each pass, and wait for it.
    """
    ask = hypervisor.disk_counters
    return UsageMeter(
        readers.of_kind(hypervisor.kind),
        host_meter.HostMeter(irq_time=irq_time), packet_meter.PacketMeter(),
        request_meter.RequestMeter(request_meter.PatientAsker(ask), 0)
        if patient else
        request_meter.RequestMeter(request_meter.Asker(ask)))


def _sample(reading: readings.Reading,
            promised: Fraction | None) -> messages.UsageSample:
    interval_us = round(reading.interval_ns / 1000)
    guest_ns = guest_wait_ns = helper_wait_ns = wakeups = 0
    for _, role, run_ns, wait_ns, timeslices in reading.threads:
        if role is Role.VCPU:
            guest_ns += run_ns
            guest_wait_ns += wait_ns
        else:
            helper_wait_ns += wait_ns
            wakeups += timeslices
    return messages.UsageSample(
        instance_uuid=reading.instance_uuid,
        at=time.time(),
        interval_us=interval_us,
        guest_us=round(guest_ns / 1000),
        wait_us=round(guest_wait_ns / 1000),
        direct_us=round(reading.direct_ns / 1000),
        direct_wait_us=round(helper_wait_ns / 1000),
        wakeups=wakeups,
        promised_us=None if promised is None else round(
            promised * interval_us))

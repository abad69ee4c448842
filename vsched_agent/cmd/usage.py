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

"""``vsched-agent usage``: who uses this host's CPUs, now."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import json
import sys
import time
import typing as ty

from oslo_config import cfg

from vsched_agent.accounting import host as host_meter
from vsched_agent.accounting import usage
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import factory
from vsched_lib.contract import messages

#: One interval: names by UUID, what instances used, what the host did.
Interval = tuple[dict[str, str], Sequence[messages.UsageSample],
                 host_meter.HostSample]


def add_commands(parsers: ty.Any) -> None:
    """Make the command known to an argument parser."""
    parser = parsers.add_parser(
        'usage', help='say who uses this host\'s CPUs, now')
    parser.add_argument(
        '--seconds', type=float, default=1.0, metavar='N',
        help='length of an interval (default: 1)')
    parser.add_argument(
        '--count', type=int, default=1, metavar='N',
        help='intervals; 0 goes on until stopped (default: 1)')
    parser.add_argument('--json', action='store_true',
                        help='one JSON object an interval')
    parser.set_defaults(handler=_usage)


def intervals(hypervisor: base.Hypervisor, seconds: float, count: int,
              sleep: Callable[[float], ty.Any] = time.sleep,
              ) -> Iterator[Interval]:
    """What happens on the host, one interval after the other.

    :param seconds: how long each.
    :param count: how many; 0 for ever.
    :raises base.HypervisorUnavailable: when there is nobody to ask.
    """
    meter, cpus = usage.UsageMeter(), host_meter.HostMeter()
    try:
        meter.sample(hypervisor.domains(), {})
        cpus.sample(0)
        number = 0
        while not count or number < count:
            number += 1
            sleep(seconds)
            domains = hypervisor.domains()
            samples = meter.sample(domains, {})
            whole = cpus.sample(sum(
                one.guest_us + one.direct_us for one in samples))
            if whole is not None:
                yield ({one.uuid: one.name for one in domains},
                       samples, whole)
    finally:
        meter.close()


def table(names: ty.Mapping[str, str],
          samples: Sequence[messages.UsageSample],
          whole: host_meter.HostSample) -> str:
    """One interval as text; all figures but the last line's in CPUs."""
    lines = ['%-36s %8s %8s %8s' % ('instance', 'guest', 'host', 'waits')]
    for one in sorted(samples, key=lambda one: -one.guest_us):
        lines.append('%-36s %8.3f %8.3f %8.3f' % (
            names.get(one.instance_uuid, one.instance_uuid)[:36],
            one.guest_us / one.interval_us, one.direct_us / one.interval_us,
            one.wait_us / one.interval_us))
    for name, value_us in (('the host itself', whole.own_us),
                           ('stolen', whole.steal_us),
                           ('idle', whole.idle_us)):
        lines.append('%-36s %8s %8.3f' % (
            name, '', value_us / whole.interval_us))
    told_us = (whole.instances_us + whole.own_us + whole.steal_us +
               whole.idle_us)
    lines.append('%-36s %8s %8.3f of %d CPUs' % (
        'all', '', told_us / whole.interval_us, whole.cpus))
    return '\n'.join(lines)


def _usage(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    if not 0.1 <= command.seconds <= 3600 or command.count < 0:
        print('vsched-agent usage: accepted are 0.1 to 3600 seconds and a '
              'count from 0', file=sys.stderr)
        return 2
    try:
        with factory.once(conf) as driver:
            for names, samples, whole in intervals(
                    driver, command.seconds, command.count):
                if command.json:
                    print(json.dumps({
                        'host': dataclasses.asdict(whole), 'instances': [
                            {'name': names.get(one.instance_uuid),
                             **one.to_dict()} for one in samples]}),
                        flush=True)
                else:
                    print(table(names, samples, whole), flush=True)
    except base.HypervisorUnavailable as problem:
        print('vsched-agent usage: %s does not answer: %s' % (
            conf.hypervisor.uri, problem), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0

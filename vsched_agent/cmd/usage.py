# SPDX-License-Identifier: Apache-2.0

"""``vsched-agent usage``: show the current CPU usage of this host."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import json
import sys
import time
import typing as ty

from oslo_config import cfg

from vsched_agent.accounting import base as readings
from vsched_agent.accounting import usage
from vsched_agent.host import kernel
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import factory
from vsched_lib.contract import messages
from vsched_lib.model import executions


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """The usage in one interval.

    :param names: of instances, by UUID.
    :param samples: usage of instances.
    :param roles_us: by instance, the run time of its threads by role.
    :param host: usage of the host's CPUs.
    :param irq_time: whether the kernel accounts interrupts separately.
    """

    names: ty.Mapping[str, str]
    samples: Sequence[messages.UsageSample]
    roles_us: ty.Mapping[str, ty.Mapping[readings.Role, int]]
    host: messages.HostUsage
    irq_time: bool


def add_commands(parsers: ty.Any) -> None:
    """Add the command to an argument parser."""
    parser = parsers.add_parser(
        'usage', help="print the current usage of this host's CPUs"
    )
    parser.add_argument(
        '--seconds',
        type=float,
        default=1.0,
        metavar='N',
        help='length of an interval in seconds (default: 1)',
    )
    parser.add_argument(
        '--count',
        type=int,
        default=1,
        metavar='N',
        help='number of intervals; 0 for no limit (default: 1)',
    )
    parser.add_argument(
        '--json',
        action='store_true',
        help='print one JSON object for each interval',
    )
    parser.add_argument(
        '--executions',
        action='store_true',
        help='print how often the threads of each instance run, the I/O of '
        'each execution and the wait before it',
    )
    parser.set_defaults(handler=_usage)


def intervals(
    hypervisor: base.Hypervisor,
    seconds: float,
    count: int,
    sleep: Callable[[float], ty.Any] = time.sleep,
) -> Iterator[Interval]:
    """Yield the usage of the host, one interval after the other.

    :param seconds: length of an interval.
    :param count: number of intervals; 0 for no limit.
    :raises base.HypervisorUnavailable: when there is no connection.
    """
    # The first domain's kernel does not see the interrupts of a Xen host.
    irq_time = kernel.KernelFacts.read().irq_time and not isinstance(
        hypervisor, base.DomainTimes
    )
    meter = usage.meter_of(hypervisor, irq_time, blocking=True)
    try:
        meter.sample(hypervisor.domains(), {})
        number = 0
        while not count or number < count:
            number += 1
            sleep(seconds)
            domains = hypervisor.domains()
            samples = meter.sample(domains, {})
            if meter.host is not None:
                yield Interval(
                    {one.uuid: one.name for one in domains},
                    samples,
                    {
                        uuid: {
                            role: ns // 1000
                            for role, ns in one.by_role_ns().items()
                        }
                        for uuid, one in meter.readings.items()
                    },
                    meter.host,
                    irq_time,
                )
    finally:
        meter.close()


_NAME = 32
_COLUMNS = (
    'guest',
    'emulator',
    'iothread',
    'vhost',
    'worker',
    'kvm',
    'other',
    'shared',
    'waits',
    'wakes/s',
    'rx/s',
    'tx/s',
    'reads/s',
    'writes/s',
)


def table(interval: Interval) -> str:
    """Format an interval as text; figures are in CPUs unless per second."""
    lines = [_row('instance', *_COLUMNS)]
    for one in sorted(interval.samples, key=lambda one: -one.guest_us):
        name = interval.names.get(one.instance_uuid, one.instance_uuid)
        roles_us = interval.roles_us.get(one.instance_uuid, {})
        host_us = [
            roles_us.get(role, 0)
            for role in (
                readings.Role.EMULATOR,
                readings.Role.IOTHREAD,
                readings.Role.VHOST,
                readings.Role.WORKER,
                readings.Role.KVM,
                readings.Role.OTHER,
            )
        ]
        seconds = one.interval_us / 1e6
        lines.append(
            _row(
                name[:_NAME],
                *(
                    '%.3f' % (us / one.interval_us)
                    for us in (
                        one.guest_us,
                        *host_us,
                        one.shared_us,
                        one.wait_us + one.direct_wait_us,
                    )
                ),
                *(
                    '%.0f' % (count / seconds)
                    for count in (
                        one.wakeups,
                        one.net_rx_packets,
                        one.net_tx_packets,
                        one.disk_read_requests,
                        one.disk_write_requests,
                    )
                ),
            )
        )
    whole = interval.host
    irq = '%.3f' % (whole.irq_us / whole.interval_us)
    for name, text in (
        ('all guests', whole.guest_us),
        ('for them: direct', whole.direct_us),
        ('for them: shared, an estimate', whole.shared_us),
        ('the host itself', whole.own_us),
        ('stolen', whole.steal_us),
        ('idle', whole.idle_us),
    ):
        lines.append(_row(name, '%.3f' % (text / whole.interval_us)))
    total_us = (
        whole.guest_us
        + whole.direct_us
        + whole.shared_us
        + whole.own_us
        + whole.steal_us
        + whole.idle_us
    )
    lines.append(
        '%s of %d CPUs'
        % (_row('all', '%.3f' % (total_us / whole.interval_us)), whole.cpus)
    )
    lines.append(
        _row('of it in interrupts', irq)
        if interval.irq_time
        else 'this kernel does not account interrupts separately'
    )
    return '\n'.join(lines)


_EXECUTION_COLUMNS = ('threads', 'times/s', 'io/time', 'us/time')


def executions_table(interval: Interval) -> str:
    """Format executions as text: a row for each kind of threads.

    The columns are executions per second, and for each execution the I/O
    events and the microseconds of waiting before it.
    """
    lines = [_row('instance', *_EXECUTION_COLUMNS)]
    for one in sorted(interval.samples, key=lambda one: -one.guest_us):
        name = interval.names.get(one.instance_uuid, one.instance_uuid)
        found = _figures(one)
        lines.append(
            _execution_row(
                name,
                'vcpu',
                found['executions_per_s'],
                found['io_per_execution'],
                found['wait_per_execution_us'],
            )
        )
        lines.append(
            _execution_row(
                '',
                'host',
                found['wakeups_per_s'],
                found['io_per_wakeup'],
                found['wait_per_wakeup_us'],
            )
        )
        for kind in executions.KINDS:
            rate = found['%s_wakeups_per_s' % kind]
            if rate:
                lines.append(
                    _execution_row(
                        '',
                        kind,
                        rate,
                        None,
                        found['%s_wait_per_wakeup_us' % kind],
                    )
                )
    return '\n'.join(lines)


def _execution_row(
    name: str,
    kind: str,
    rate: float | None,
    events: float | None,
    wait_us: float | None,
) -> str:
    return _row(
        name[:_NAME],
        kind,
        *(
            '-' if value is None else '%.*f' % (digits, value)
            for value, digits in ((rate, 0), (events, 2), (wait_us, 1))
        ),
    )


def _figures(sample: messages.UsageSample) -> dict[str, float | None]:
    return executions.figures(
        {**sample.to_dict(), **executions.by_name(sample.executions)},
        sample.interval_us,
    )


def _row(name: str, *cells: str) -> str:
    return (
        '%-*s' % (_NAME, name) + ''.join(' %8s' % cell for cell in cells)
    ).rstrip()


def _usage(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    if not 0.1 <= command.seconds <= 3600 or command.count < 0:
        print(
            'vsched-agent usage: accepted are 0.1 to 3600 seconds and a '
            'count from 0',
            file=sys.stderr,
        )
        return 2
    try:
        with factory.once(conf) as driver:
            for one in intervals(driver, command.seconds, command.count):
                print(_text(one, command), flush=True)
    except base.HypervisorUnavailable as problem:
        print(
            'vsched-agent usage: %s does not answer: %s'
            % (conf.hypervisor.uri, problem),
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        pass
    return 0


def _text(interval: Interval, command: ty.Any) -> str:
    if command.json:
        return json.dumps(_json(interval))
    if command.executions:
        return executions_table(interval)
    return table(interval)


def _json(interval: Interval) -> dict[str, ty.Any]:
    return {
        'host': {**interval.host.to_dict(), 'irq_time': interval.irq_time},
        'instances': [
            {
                'name': interval.names.get(one.instance_uuid),
                'roles_us': {
                    str(role): us
                    for role, us in interval.roles_us.get(
                        one.instance_uuid, {}
                    ).items()
                },
                **one.to_dict(),
                **executions.by_name(one.executions),
                **_figures(one),
            }
            for one in interval.samples
        ],
    }

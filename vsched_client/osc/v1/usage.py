# SPDX-License-Identifier: Apache-2.0

"""``openstack cpu usage``."""

import argparse
import operator
import typing as ty

from vsched_client.osc import command
from vsched_client.osc import exit_codes
from vsched_client.osc import options
from vsched_client.osc import tables
from vsched_client import units

Column = tables.Column

#: The longest window of totals.
MAX_WINDOW_US = 3_600_000_000


def _part(name: str) -> ty.Callable[[tables.Object], ty.Any]:
    """Return a function for a duration as a part of the interval."""

    def part_mcpu(one: tables.Object) -> ty.Any:
        if one.get(name) is None or not one['interval_us']:
            return None
        return round(one[name] * 1000 / one['interval_us'])

    return part_mcpu


_INSTANCE_COLUMNS = (
    Column('at', 'Time', tables.time),
    Column('host', 'Host'),
    Column('instance_uuid', 'Instance'),
    Column('server_name', 'Server'),
    Column('project_id', 'Project', extra=True),
    Column('flavor_name', 'Flavor', extra=True),
    Column('interval_us', 'Interval', tables.us),
    Column('promised_mcpu', 'Reserved', tables.mcpu),
    Column('guest_mcpu', 'Got', tables.mcpu),
    Column('error_ppm', 'Error', tables.error_ppm),
    Column('wait_mcpu', 'Waited', tables.mcpu, _part('wait_us')),
    Column('direct_mcpu', 'I/O threads', tables.mcpu, _part('direct_us')),
    Column('shared_mcpu', 'Shared', tables.mcpu, _part('shared_us')),
    Column('guest_us', 'Guest time', tables.us, extra=True),
    Column('wait_us', 'Wait time', tables.us, extra=True),
    Column('promised_us', 'Reserved time', tables.us, extra=True),
    Column('direct_us', 'I/O thread time', tables.us, extra=True),
    Column('shared_us', 'Shared time', tables.us, extra=True),
    Column('net_rx_packets', 'Received', extra=True),
    Column('net_tx_packets', 'Sent', extra=True),
    Column('disk_read_requests', 'Reads', extra=True),
    Column('disk_write_requests', 'Writes', extra=True),
    Column('wakeups', 'Wakeups', extra=True),
    Column('executions', 'Executions', extra=True),
)

_HOST_COLUMNS = (
    Column('at', 'Time', tables.time),
    Column('host', 'Host'),
    Column('interval_us', 'Interval', tables.us),
    Column('cpus', 'CPUs'),
    Column('idle_mcpu', 'Idle', tables.mcpu, _part('idle_us')),
    Column('guest_mcpu', 'Guests', tables.mcpu, _part('guest_us')),
    Column('direct_mcpu', 'I/O threads', tables.mcpu, _part('direct_us')),
    Column('shared_mcpu', 'Shared', tables.mcpu, _part('shared_us')),
    Column('own_mcpu', 'Own', tables.mcpu, _part('own_us')),
    Column('steal_mcpu', 'Stolen', tables.mcpu, _part('steal_us')),
    Column('irq_mcpu', 'Interrupts', tables.mcpu, _part('irq_us')),
    Column('cpu_us', 'CPU time', tables.us, extra=True),
    Column('idle_us', 'Idle time', tables.us, extra=True),
    Column('guest_us', 'Guest time', tables.us, extra=True),
    Column('direct_us', 'I/O thread time', tables.us, extra=True),
    Column('shared_us', 'Shared time', tables.us, extra=True),
    Column('own_us', 'Own time', tables.us, extra=True),
    Column('steal_us', 'Stolen time', tables.us, extra=True),
    Column('irq_us', 'Interrupt time', tables.us, extra=True),
)


class ShowUsage(command.List):
    """Show the CPU time that instances got, or what hosts did with theirs.

    The newest intervals, the oldest of them first.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'instances',
            metavar='<instance>',
            nargs='*',
            type=options.uuid,
            help='UUIDs of instances, up to 100; default: all of --host',
        )
        parser.add_argument(
            '--host', metavar='<host>', help='Only those of this host'
        )
        parser.add_argument(
            '--of',
            choices=('instances', 'hosts'),
            default='instances',
            help='hosts: what the CPUs of hosts did; default: instances',
        )
        parser.add_argument(
            '--resolution',
            choices=('raw', 'minute', 'hour'),
            default='raw',
            help='Intervals as reported, or their sums; default: raw',
        )
        options.add_server(parser)
        options.add_times(parser, 'what ended')
        options.add_limit(parser, 20)
        return parser

    def columns_of(self, parsed_args: argparse.Namespace) -> tables.Columns:
        """Return the columns of this subject."""
        if parsed_args.of == 'hosts':
            return _HOST_COLUMNS
        return _INSTANCE_COLUMNS

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        if parsed_args.of == 'hosts' and parsed_args.instances:
            raise exit_codes.UsageError(
                'give an instance or --of hosts, not both'
            )
        servers = _servers(parsed_args)
        if parsed_args.of == 'hosts' and any(servers.values()):
            raise exit_codes.UsageError(
                'give --server-project, --server-name or --flavor, or --of '
                'hosts, not both'
            )
        found = list(
            self.client.usage.list(
                of=parsed_args.of,
                resolution=parsed_args.resolution,
                instance_uuids=parsed_args.instances,
                host=parsed_args.host,
                start=parsed_args.start,
                end=parsed_args.end,
                newest_first=True,
                limit=parsed_args.limit,
                **servers,
            )
        )
        return self.table(parsed_args, found[::-1])


def _servers(parsed_args: argparse.Namespace) -> dict[str, str | None]:
    """Return the filters by what Nova knows of servers."""
    return {
        'project_id': parsed_args.server_project,
        'server_name': parsed_args.server_name,
        'flavor_name': parsed_args.flavor,
    }


_TOP_COLUMNS = (
    Column('instance_uuid', 'Instance'),
    Column('server_name', 'Server'),
    Column('project_id', 'Project', extra=True),
    Column('flavor_name', 'Flavor', extra=True),
    Column('host', 'Host'),
    Column('promised_mcpu', 'Reserved', tables.mcpu),
    Column('guest_mcpu', 'Got', tables.mcpu),
    Column('error_ppm', 'Error', tables.error_ppm),
    Column('wait_mcpu', 'Waited', tables.mcpu),
    Column('host_mcpu', 'Host for it', tables.mcpu),
    Column('interval_us', 'Measured', tables.us),
    Column('at', 'Time', tables.time, extra=True),
    Column('samples', 'Samples', extra=True),
)

#: What instances may be ordered by, and the field.
_ORDERS = {
    'got': 'guest_mcpu',
    'waited': 'wait_mcpu',
    'host': 'host_mcpu',
    'error': 'error_ppm',
}


class ShowTop(command.List):
    """Show which instances use the most CPU time now.

    All instances of the hosts that are up are compared. The window of
    each host ends with its own newest sample. When there are too many samples
    to read the windows are shorter, with a warning for those who may see
    hosts.
    """

    columns = _TOP_COLUMNS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        options.add_host(parser)
        options.add_server(parser)
        parser.add_argument(
            '--by',
            choices=tuple(_ORDERS),
            default='got',
            help='got: by run time of vCPUs; waited: by the time in which '
            'they were ready and did not run; host: by the time that the '
            'host spent on them; error: those that got least of their '
            'reservation first; default: got',
        )
        parser.add_argument(
            '--window',
            metavar='<duration>',
            type=options.quantity(units.duration_us),
            default=10_000_000,
            help='Sum the samples of this time up to the newest one of each '
            'host, at most 1h; default: 10s',
        )
        options.add_limit(parser, 20)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        if not 1 <= parsed_args.window <= MAX_WINDOW_US:
            raise exit_codes.UsageError(
                '--window: give more than 0 and at most 1h'
            )
        totals = self.client.usage.totals(
            parsed_args.window / 1_000_000,
            host=parsed_args.host,
            **_servers(parsed_args),
        )
        if totals.cut:
            self.report(
                'warning: %d of %d hosts have more samples in the window '
                'than are read: for host %s they cover %.1f s of it'
                % (
                    len(totals.cut),
                    totals.hosts,
                    *min(totals.cut.items(), key=operator.itemgetter(1)),
                )
            )
        rows = [
            {
                'instance_uuid': one.instance_uuid,
                'server_name': one.server_name,
                'project_id': one.project_id,
                'flavor_name': one.flavor_name,
                'host': one.host,
                'promised_mcpu': one.mcpu(one.reserved_us) or None,
                'guest_mcpu': one.mcpu(one.guest_us),
                'error_ppm': one.error_ppm,
                'wait_mcpu': one.mcpu(one.wait_us),
                'host_mcpu': one.mcpu(one.host_us),
                'interval_us': one.interval_us,
                'at': one.at,
                'samples': one.samples,
            }
            for one in totals.instances
        ]
        field = _ORDERS[parsed_args.by]
        # The lowest error first, the highest of all others; those without
        # come last.
        sign = 1 if parsed_args.by == 'error' else -1
        rows.sort(
            key=lambda one: (
                one[field] is None,
                sign * (one[field] or 0),
                one['instance_uuid'],
            )
        )
        return self.table(parsed_args, rows[: parsed_args.limit])

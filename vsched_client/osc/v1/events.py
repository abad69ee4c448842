# SPDX-License-Identifier: Apache-2.0

"""``openstack cpu event``."""

import argparse
from collections.abc import Iterable
from collections.abc import Sequence
import typing as ty

from vsched_client.osc import command
from vsched_client.osc import exit_codes
from vsched_client.osc import follow
from vsched_client.osc import options
from vsched_client.osc import tables
from vsched_client import units

Column = tables.Column


class ListEvents(command.List):
    """List events, newest first; or follow them as they happen."""

    columns = (
        Column('at', 'Time', tables.time),
        Column('host', 'Host'),
        Column('severity', 'Severity'),
        Column('code', 'Code'),
        Column('instance_uuid', 'Instance'),
        Column('server_name', 'Server'),
        Column('project_id', 'Project', extra=True),
        Column('flavor_name', 'Flavor', extra=True),
        Column('detail', 'Detail'),
        Column('figures', 'Figures', extra=True),
        Column('uuid', 'Event', extra=True),
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        options.add_host(parser)
        options.add_instances(parser, 'Only those about this instance')
        options.add_server(parser)
        parser.add_argument(
            '--severity',
            metavar='<severity>',
            help='Only those that are: info, warning or error',
        )
        parser.add_argument(
            '--code',
            metavar='<code>',
            help='Only those with this code, as in vsched.drift.repaired',
        )
        options.add_times(parser, 'those')
        options.add_limit(parser, 50)
        parser.add_argument(
            '--follow',
            action='store_true',
            help='Go on with each new event, one a line, the oldest first, '
            'until interrupted; with -f json one JSON object a line',
        )
        parser.add_argument(
            '--interval',
            metavar='<duration>',
            type=options.quantity(units.duration_us),
            default=2_000_000,
            help='With --follow: time between two requests; default: 2s',
        )
        parser.add_argument(
            '--timeout',
            metavar='<duration>',
            type=options.quantity(units.duration_us),
            help='With --follow: end after this time, as in 10s; default: '
            'never',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        filters = {
            'host': parsed_args.host,
            'instance_uuids': parsed_args.instances,
            'project_id': parsed_args.server_project,
            'server_name': parsed_args.server_name,
            'flavor_name': parsed_args.flavor,
            'severity': parsed_args.severity,
            'code': parsed_args.code,
            'start': parsed_args.start,
            'limit': parsed_args.limit,
        }
        if not parsed_args.follow:
            return self.table(
                parsed_args,
                self.client.events.list(end=parsed_args.end, **filters),
            )
        if parsed_args.end is not None:
            raise exit_codes.UsageError('give --follow or --end, not both')
        return (), self.client.events.follow(
            interval_s=parsed_args.interval / 1_000_000,
            timeout_s=None
            if parsed_args.timeout is None
            else parsed_args.timeout / 1_000_000,
            **filters,
        )

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[ty.Any],
    ) -> int:
        """Write the output, which has no end while events are followed."""
        if not parsed_args.follow:
            return super().produce_output(parsed_args, column_names, data)
        shown = tables.visible(
            parsed_args.formatter, self.columns, parsed_args.columns
        )
        names = tables.names(parsed_args.formatter, shown)
        kept, _ = self._generate_columns_and_selector(parsed_args, names)
        shown = [
            column
            for column, name in zip(shown, names, strict=True)
            if name in kept
        ]
        follow.write(self.app.stdout, parsed_args.formatter, shown, data)
        return 0

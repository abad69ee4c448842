# SPDX-License-Identifier: Apache-2.0

"""``openstack cpu evaluation``."""

import argparse
import typing as ty

from vsched_client import nova
from vsched_client.osc import command
from vsched_client.osc import exit_codes
from vsched_client.osc import options
from vsched_client.osc import tables
from vsched_client.osc.v1 import reservation_options
from vsched_client import units

Column = tables.Column


def _problems(found: list[dict[str, ty.Any]]) -> str:
    return (
        '\n'.join('%s: %s' % (one['cause'], one['detail']) for one in found)
        or '-'
    )


class CreateEvaluation(command.List):
    """List on which hosts instances would fit, and why not on others.

    Nothing is booted or stored. Exit with 3 when not all of them fit.
    """

    columns = (
        Column('host', 'Host'),
        Column('state', 'State'),
        Column('fits', 'Fits'),
        Column('room', 'Room'),
        Column('placed', 'Placed'),
        Column('score', 'Score'),
        Column('backend', 'Backend'),
        Column('demand_mcpu', 'Demand', tables.mcpu),
        Column('free_mcpu', 'Free', tables.mcpu),
        Column('capacity_mcpu', 'Capacity', tables.mcpu),
        Column('problems', 'Problems', _problems),
        Column('weights', 'Weights', extra=True),
        Column('guest_mcpu', 'Guest', tables.mcpu, extra=True),
        Column('overhead_mcpu', 'I/O', tables.mcpu, extra=True),
        Column('margin_ppm', 'Margin', tables.ppm, extra=True),
        Column(
            'measured_p99_lower_ppm',
            'Measured error',
            tables.error_ppm,
            extra=True,
        ),
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        subject = parser.add_mutually_exclusive_group()
        subject.add_argument(
            '--flavor',
            metavar='<flavor>',
            help='Name or ID of a flavor: its vCPUs and extra specs; the '
            'options of the reservation are set over it',
        )
        subject.add_argument(
            '--demand',
            metavar='<cpus>',
            type=options.quantity(units.mcpu),
            help='As much capacity, whatever it is for, as in 1500m, 1.5 or a '
            'percentage; no other option describes the instance then',
        )
        parser.add_argument(
            '--property',
            metavar='<key=value>',
            dest='properties',
            action='append',
            default=[],
            type=reservation_options.pair,
            help='Extra spec of the flavor, as in '
            'vsched:max_alloc_error_pct=2; may be repeated',
        )
        parser.add_argument(
            '--vcpus',
            metavar='<number>',
            type=options.integer(1, 1024),
            help='vCPUs of an instance; default: those of --flavor, or 1',
        )
        reservation_options.add(parser, required=False)
        parser.add_argument(
            '--instances',
            metavar='<number>',
            type=options.integer(1, 1000),
            default=1,
            help='How many instances; default: 1',
        )
        parser.add_argument(
            '--host',
            metavar='<host>',
            dest='hosts',
            action='append',
            default=[],
            help='Only this host; may be repeated; default: all',
        )
        options.add_limit(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        evaluation = self.client.evaluations.create(
            **self._subject(parsed_args),
            instances=parsed_args.instances,
            hosts=parsed_args.hosts,
            limit=parsed_args.limit,
        )
        placed = {
            one['host']: one['instances'] for one in evaluation['placed']
        }
        room = evaluation['room']
        text = '%d of %d hosts fit, with room for %s; %d of %d placed' % (
            evaluation['hosts_fit'],
            evaluation['hosts_total'],
            'any number' if room is None else room,
            sum(placed.values()),
            evaluation['instances'],
        )
        if evaluation['all_fit']:
            self.report(text)
        else:
            self.refuse(text)
        return self.table(
            parsed_args,
            [
                {'placed': placed.get(one['host'], 0), **one}
                for one in evaluation['hosts']
            ],
        )

    def _subject(self, parsed_args: argparse.Namespace) -> dict[str, ty.Any]:
        """Return what instances are like, as the API has it."""
        override = reservation_options.fields(parsed_args)
        described = (
            override
            or parsed_args.properties
            or (parsed_args.share is not None or parsed_args.vcpus is not None)
        )
        if parsed_args.demand is not None:
            if described:
                raise exit_codes.UsageError(
                    'give --demand or what describes an instance, not both'
                )
            return {'demand_mcpu': parsed_args.demand}
        specs, vcpus = self._flavor(parsed_args.flavor)
        specs.update(parsed_args.properties)
        if parsed_args.share is not None:
            period_us = override.get(
                'period_us'
            ) or reservation_options.period_us(specs)
            override['runtime_us'] = units.runtime_us(
                parsed_args.share, period_us
            )
        if not override and not specs:
            raise exit_codes.UsageError(
                'nothing to evaluate: give --share, --runtime, --flavor, '
                '--property or --demand'
            )
        return {
            'extra_specs': specs,
            'vcpus': parsed_args.vcpus or vcpus,
            'override': override,
        }

    def _flavor(self, name: str | None) -> tuple[dict[str, str], int]:
        if name is None:
            return {}, 1
        flavor = nova.Nova(self.compute).flavor(name)
        return dict(flavor.extra_specs), flavor.vcpus

# SPDX-License-Identifier: Apache-2.0

"""``openstack cpu balloon``."""

import argparse
import typing as ty

from vsched_client.osc import command
from vsched_client.osc import options
from vsched_client.osc import tables

Column = tables.Column


def _ordered(name: str) -> ty.Callable[[tables.Object], ty.Any]:
    return lambda one: (one.get('order') or {}).get(name)


class ListBalloons(command.List):
    """List how many vCPUs instances use, and why."""

    columns = (
        Column('instance_uuid', 'Instance'),
        Column('server_name', 'Server'),
        Column('instance_name', 'Name'),
        Column('project_id', 'Project', extra=True),
        Column('flavor_name', 'Flavor', extra=True),
        Column('host', 'Host'),
        Column('state', 'State'),
        Column('online_vcpus', 'Online'),
        Column('vcpus', 'vCPUs'),
        Column('min_vcpus', 'Fewest'),
        Column('auto', 'Auto'),
        Column('order_state', 'Order', value=_ordered('state')),
        Column('target_vcpus', 'Ordered', value=_ordered('target_vcpus')),
        Column('frozen', 'Frozen', value=_ordered('frozen')),
        Column('cause', 'Cause'),
        Column(
            'generation',
            'Generation',
            value=_ordered('generation'),
            extra=True,
        ),
        Column('failures', 'Failures', extra=True),
        Column('not_before', 'Not before', tables.time, extra=True),
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        options.add_host(parser)
        parser.add_argument(
            '--state',
            metavar='<state>',
            action='append',
            default=[],
            help='Only those in this state: full, trial, kept, manual or '
            'returning; may be repeated',
        )
        options.add_server(parser)
        options.add_instances(parser, 'Only this instance')
        options.add_limit(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        return self.table(
            parsed_args,
            self.client.balloons.list(
                host=parsed_args.host,
                states=parsed_args.state,
                limit=parsed_args.limit,
                project_id=parsed_args.server_project,
                server_name=parsed_args.server_name,
                flavor_name=parsed_args.flavor,
                instance_uuids=parsed_args.instances,
            ),
        )


class Show(command.Show):
    """Base of the commands that print one balloon."""

    columns = (
        Column('instance_uuid', 'Instance'),
        Column('server_name', 'Server'),
        Column('instance_name', 'Name'),
        Column('project_id', 'Project'),
        Column('flavor_name', 'Flavor'),
        Column('host', 'Host'),
        Column('present', 'Running'),
        Column('state', 'State'),
        Column('cause', 'Cause'),
        Column('vcpus', 'vCPUs'),
        Column('online_vcpus', 'Online'),
        Column('min_vcpus', 'Fewest'),
        Column('floor_vcpus', 'Fewest for the reservation'),
        Column('auto', 'Auto'),
        Column('dry_run', 'Dry run'),
        Column('pinned', 'Pinned'),
        Column('guest_answers', 'Guest answers'),
        Column('failures', 'Failures'),
        Column('cpus', 'Host CPUs'),
        Column('since', 'Since', tables.time),
        Column('not_before', 'Not before', tables.time),
        Column('order', 'Order'),
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        options.add_instance(parser)
        return parser

    def answered(
        self, parsed_args: argparse.Namespace, one: ty.Any
    ) -> tables.Rows:
        """Return the output of an order, after the agent's answer."""
        if parsed_args.wait:
            order = one['order']
            if order is not None and order['state'] == 'pending':
                one = self.client.balloons.wait(
                    parsed_args.instance,
                    order['generation'],
                    options.timeout_s(parsed_args),
                )
            order = one['order']
            if order is not None and order['state'] == 'refused':
                self.refuse(
                    'host %s: refused: %s %s'
                    % (one['host'], order['code'], order['detail'])
                )
        return self.table(parsed_args, one)


def _add_change(parser: argparse.ArgumentParser) -> None:
    options.add_generation(parser)
    options.add_wait(
        parser, 'the agent has answered', options.ANSWER_TIMEOUT_S
    )


class ShowBalloon(Show):
    """Show how many vCPUs an instance uses, why, and what is ordered."""

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        return self.table(
            parsed_args, self.client.balloons.get(parsed_args.instance)
        )


class SetBalloon(Show):
    """Order how many vCPUs an instance uses."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--vcpus',
            metavar='<number>',
            type=options.integer(1, 2**31 - 1),
            required=True,
            help='How many vCPUs',
        )
        parser.add_argument(
            '--frozen',
            action='store_true',
            help='Also keep the agent from changing the number by itself',
        )
        _add_change(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        return self.answered(
            parsed_args,
            self.client.balloons.create(
                parsed_args.instance,
                parsed_args.vcpus,
                frozen=parsed_args.frozen,
                generation=parsed_args.generation,
            ),
        )


class UnsetBalloon(Show):
    """Leave the vCPUs of an instance to its agent again."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        _add_change(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        return self.answered(
            parsed_args,
            self.client.balloons.delete(
                parsed_args.instance, generation=parsed_args.generation
            ),
        )


class FreezeBalloon(Show):
    """Keep the agent from changing the number of an instance's vCPUs."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--off',
            action='store_true',
            help='Let the agent change the number again; an ordered number '
            'stays',
        )
        _add_change(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        return self.answered(
            parsed_args,
            self.client.balloons.update(
                parsed_args.instance,
                generation=parsed_args.generation,
                frozen=not parsed_args.off,
            ),
        )


class ListHistory(command.List):
    """List balloons that are or were, newest first."""

    columns = (
        Column('started_at', 'Started', tables.time),
        Column('duration_s', 'Lasted', tables.seconds),
        Column('host', 'Host'),
        Column('instance_uuid', 'Instance'),
        Column('server_name', 'Server'),
        Column('project_id', 'Project', extra=True),
        Column('flavor_name', 'Flavor', extra=True),
        Column('before_vcpus', 'Before'),
        Column('online_vcpus', 'Online'),
        Column('vcpus', 'vCPUs'),
        Column('manual', 'Ordered'),
        Column('outcome', 'Outcome'),
        Column('cause', 'Cause'),
        Column('detail', 'Detail'),
        Column('took_ms', 'Took (ms)', extra=True),
        Column('ended_at', 'Ended', tables.time, extra=True),
        Column('uuid', 'Balloon', extra=True),
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        options.add_instances(parser, "Only this instance's")
        options.add_host(parser)
        options.add_server(parser)
        parser.add_argument(
            '--outcome',
            metavar='<outcome>',
            action='append',
            default=[],
            help='Only those with this outcome: kept, calm, reverted, '
            'unknown, failed, undone, changed or proposed; may be repeated',
        )
        options.add_times(parser, 'those that began')
        options.add_limit(parser, 50)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        return self.table(
            parsed_args,
            self.client.balloons.history(
                host=parsed_args.host,
                instance_uuids=parsed_args.instances,
                project_id=parsed_args.server_project,
                server_name=parsed_args.server_name,
                flavor_name=parsed_args.flavor,
                outcomes=parsed_args.outcome,
                start=parsed_args.start,
                end=parsed_args.end,
                limit=parsed_args.limit,
            ),
        )

# SPDX-License-Identifier: Apache-2.0

"""``openstack cpu host``."""

import argparse
from collections.abc import Mapping
import typing as ty

from vsched_client.osc import command
from vsched_client.osc import options
from vsched_client.osc import tables

Column = tables.Column

#: What the API sorts hosts by.
SORT_KEYS = ('name', 'last_report_at', 'admitted_mcpu')


def free_mcpu(one: tables.Object) -> int | None:
    """Return what a host could still reserve; None when it is not known."""
    if one.get('capacity_mcpu') is None or one.get('admitted_mcpu') is None:
        return None
    return int(one['capacity_mcpu']) - int(one['admitted_mcpu'])


def usable_backends(one: tables.Object) -> list[str]:
    """Return the names of the backends that a host can use."""
    return [
        backend['name'] for backend in one['backends'] if backend['usable']
    ]


def _placement_state(one: tables.Object) -> ty.Any:
    return (one.get('placement') or {}).get('state')


def _backends(found: list[Mapping[str, ty.Any]]) -> str:
    return '\n'.join(
        '%s: %s'
        % (
            one['name'],
            'usable' if one['usable'] else '; '.join(one['reasons']) or 'no',
        )
        for one in found
    )


def _contradictions(found: Mapping[str, ty.Any] | None) -> str:
    if found is None:
        return '-'
    return '\n'.join(
        '%s: %s' % (one['code'], one['detail'])
        for one in found['contradictions']
    ) or 'none at %s' % tables.time(found['checked_at'])


@tables.unless_none
def _finding_counts(found: Mapping[str, int]) -> str:
    return (
        ', '.join(
            '%d %s%s' % (count, level, '' if count == 1 else 's')
            for level, count in found.items()
            if count
        )
        or 'none'
    )


def _findings(found: list[Mapping[str, ty.Any]] | None) -> str:
    if found is None:
        return '-'
    return (
        '\n'.join(
            '%s: %s: %s%s'
            % (
                one['level'],
                one['subject'],
                one['text'],
                '\n  -> ' + one['remedy'] if one['remedy'] else '',
            )
            for one in found
        )
        or 'none'
    )


class ListHosts(command.List):
    """List hosts with what they reserve and what is free."""

    columns = (
        Column('name', 'Host'),
        Column('state', 'State'),
        Column('instances', 'Instances'),
        Column('cpus', 'CPUs'),
        Column('capacity_mcpu', 'Capacity', tables.mcpu),
        Column('admitted_mcpu', 'Reserved', tables.mcpu),
        Column('free_mcpu', 'Free', tables.mcpu, free_mcpu),
        Column('backends', 'Backends', value=usable_backends),
        Column('placement', 'Placement', value=_placement_state),
        Column('finding_counts', 'Findings', _finding_counts),
        Column('last_report_at', 'Last report', tables.time),
        Column('clock_skew_s', 'Clock skew', tables.seconds, extra=True),
        Column('kernel', 'Kernel', extra=True),
        Column('agent_version', 'Agent', extra=True),
        Column('problem', 'Problem', extra=True),
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--state',
            metavar='<state>',
            help='Only those in this state: up or down',
        )
        parser.add_argument(
            '--name-prefix',
            metavar='<text>',
            help='Only those whose names begin with this',
        )
        parser.add_argument(
            '--backend',
            metavar='<backend>',
            help='Only those that can use this backend: deadline, cfs, rtds, '
            'credit2 or credit',
        )
        options.add_sort(parser, SORT_KEYS)
        options.add_limit(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        sort_key, descending = parsed_args.sort
        return self.table(
            parsed_args,
            self.client.hosts.list(
                limit=parsed_args.limit,
                state=parsed_args.state,
                name_prefix=parsed_args.name_prefix,
                backend=parsed_args.backend,
                sort_key=sort_key,
                descending=descending,
            ),
        )


class ShowHost(command.Show):
    """Show a host: capacity, backends, findings and contradictions."""

    columns = (
        Column('name', 'Host'),
        Column('state', 'State'),
        Column('last_report_at', 'Last report', tables.time),
        Column('clock_skew_s', 'Clock skew', tables.seconds),
        Column('problem', 'Problem'),
        Column('instances', 'Instances'),
        Column('cpus', 'CPUs'),
        Column('capacity_mcpu', 'Capacity', tables.mcpu),
        Column('admitted_mcpu', 'Reserved', tables.mcpu),
        Column('free_mcpu', 'Free', tables.mcpu, free_mcpu),
        Column('reserve_mcpu', 'Kept for the host', tables.mcpu),
        Column('leaked_mcpu', 'Leaked', tables.mcpu),
        Column('backends', 'Backends', _backends),
        Column('findings', 'Findings', _findings),
        Column('placement', 'Placement'),
        Column('policy', 'Policy'),
        Column('verification', 'Contradictions', _contradictions),
        Column('tick_us', 'Scheduler tick', tables.us),
        Column('budget_check_us', 'Budget check', tables.us),
        Column('kernel', 'Kernel'),
        Column('hypervisor', 'Hypervisor'),
        Column('agent_version', 'Agent'),
        Column('boot_id', 'Boot'),
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>', help='Name of the host')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        return self.table(parsed_args, self.client.hosts.get(parsed_args.host))


class AuditHost(command.List):
    """List differences between placement, the database and the kernel.

    Exit with 6 when there are any.
    """

    columns = (
        Column('kind', 'Difference'),
        Column('consumer', 'Consumer'),
        Column('claimed_mcpu', 'Claimed', tables.mcpu),
        Column('promised_mcpu', 'Reserved', tables.mcpu),
        Column('held_mcpu', 'Enforced', tables.mcpu),
        Column('detail', 'Detail'),
        Column('host', 'Host', extra=True),
        Column('provider_uuid', 'Provider', extra=True),
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>', help='Name of the host')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        audit = self.client.hosts.audit(parsed_args.host)
        if not audit['agrees']:
            self.exit_code = command.ExitCode.DIFFERS
        return self.table(parsed_args, audit['differences'])

# SPDX-License-Identifier: Apache-2.0

"""``openstack cpu reservation``."""

import argparse
import typing as ty

from vsched_client.osc import command
from vsched_client.osc import exit_codes
from vsched_client.osc import options
from vsched_client.osc import tables
from vsched_client.osc.v1 import reservation_options
from vsched_client import units

Column = tables.Column

#: What the API sorts reservations by.
SORT_KEYS = ('instance_uuid', 'host', 'state', 'bandwidth_mcpu')

_REFUSED = ('refused', 'degraded', 'released')


def share_ppm(one: tables.Object) -> int | None:
    """Return the share of a CPU that each vCPU is to get."""
    return units.share_ppm(one.get('runtime_us'), one.get('period_us'))


def _enforced(name: str) -> ty.Callable[[tables.Object], ty.Any]:
    return lambda one: (one.get('enforced') or {}).get(name)


def _held(found: ty.Any) -> str:
    if found is None:
        return '-'
    return '%s every %s by %s' % (
        tables.us(found['runtime_us']),
        tables.us(found['period_us']),
        found['backend'],
    )


class ListReservations(command.List):
    """List reservations and their state."""

    columns = (
        Column('instance_uuid', 'Instance'),
        Column('server_name', 'Server'),
        Column('instance_name', 'Name'),
        Column('project_id', 'Project', extra=True),
        Column('flavor_name', 'Flavor', extra=True),
        Column('host', 'Host'),
        Column('state', 'State'),
        Column('source', 'Source'),
        Column('vcpus', 'vCPUs'),
        Column('share_ppm', 'Share', tables.ppm, share_ppm),
        Column('runtime_us', 'Runtime', tables.us, extra=True),
        Column('period_us', 'Period', tables.us),
        Column('mode', 'Mode'),
        Column('enforced_backend', 'Backend', value=_enforced('backend')),
        Column('bandwidth_mcpu', 'Bandwidth', tables.mcpu),
        Column(
            'enforced_bandwidth_mcpu',
            'Enforced',
            tables.mcpu,
            _enforced('bandwidth_mcpu'),
            extra=True,
        ),
        Column('generation', 'Generation', extra=True),
        Column('code', 'Code', extra=True),
        Column('detail', 'Detail', extra=True),
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
            help='Only those in this state: pending, applied, degraded, '
            'refused or released; may be repeated',
        )
        parser.add_argument(
            '--source',
            metavar='<source>',
            action='append',
            default=[],
            help='Only those from here: metadata (the flavor), override or '
            'none; may be repeated',
        )
        parser.add_argument(
            '--backend',
            metavar='<backend>',
            help='Only those that this backend enforces now: deadline, cfs, '
            'rtds, credit2 or credit',
        )
        options.add_server(parser)
        options.add_instances(parser, 'Only that of this instance')
        options.add_sort(parser, SORT_KEYS)
        options.add_limit(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        sort_key, descending = parsed_args.sort
        return self.table(
            parsed_args,
            self.client.reservations.list(
                host=parsed_args.host,
                states=parsed_args.state,
                sources=parsed_args.source,
                backend=parsed_args.backend,
                limit=parsed_args.limit,
                project_id=parsed_args.server_project,
                server_name=parsed_args.server_name,
                flavor_name=parsed_args.flavor,
                instance_uuids=parsed_args.instances,
                sort_key=sort_key,
                descending=descending,
            ),
        )


class Show(command.Show):
    """Base of the commands that print one reservation."""

    columns = (
        Column('instance_uuid', 'Instance'),
        Column('server_name', 'Server'),
        Column('instance_name', 'Name'),
        Column('project_id', 'Project'),
        Column('flavor_name', 'Flavor'),
        Column('host', 'Host'),
        Column('present', 'Running'),
        Column('state', 'State'),
        Column('code', 'Code'),
        Column('detail', 'Detail'),
        Column('figures', 'Figures'),
        Column('source', 'Source'),
        Column('generation', 'Generation'),
        Column('vcpus', 'vCPUs'),
        Column('share_ppm', 'Share', tables.ppm, share_ppm),
        Column('runtime_us', 'Runtime', tables.us),
        Column('period_us', 'Period', tables.us),
        Column('mode', 'Mode'),
        Column('backend', 'Requested backend'),
        Column('bandwidth_mcpu', 'Bandwidth', tables.mcpu),
        Column('enforced', 'Enforced', _held),
        Column('io', 'I/O threads'),
        Column('communication', 'Communication'),
        *(
            Column(key, title)
            for key, title in reservation_options.EXTRA_SPECS.items()
        ),
        Column('override', 'Override'),
        Column('since', 'Since', tables.time),
        Column('attested_at', 'Attested', tables.time),
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        options.add_instance(parser)
        return parser

    def answered(
        self, parsed_args: argparse.Namespace, one: ty.Any
    ) -> tables.Rows:
        """Return the output of a change, after the agent's answer.

        :param one: the reservation; None when nothing is left of it.
        """
        if one is None:
            return (), ()
        if parsed_args.wait and one['state'] == 'pending':
            one = self.client.reservations.wait(
                parsed_args.instance,
                one['generation'],
                options.timeout_s(parsed_args),
            )
            if one is None:
                return (), ()
        if parsed_args.wait:
            self._judge(one)
        return self.table(parsed_args, one)

    def _judge(self, one: ty.Any) -> None:
        if one['state'] in _REFUSED and (
            one['state'] != 'released' or one['runtime_us'] is not None
        ):
            self.refuse(
                'host %s: %s: %s'
                % (
                    one['host'],
                    one['state'],
                    ' '.join(
                        '%s' % part
                        for part in (one['code'], one['detail'])
                        if part
                    )
                    or 'the agent gave no reason',
                )
            )


class ShowReservation(Show):
    """Show a reservation: what is desired and what the kernel enforces."""

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        return self.table(
            parsed_args, self.client.reservations.get(parsed_args.instance)
        )


class CreateReservation(Show):
    """Give a reservation to an instance that has none."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        reservation_options.add(parser, required=True)
        options.add_wait(
            parser, 'the agent has answered', options.ANSWER_TIMEOUT_S
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        fields = reservation_options.fields(parsed_args)
        period_us = fields.setdefault(
            'period_us', reservation_options.DEFAULT_PERIOD_US
        )
        if parsed_args.share is not None:
            fields['runtime_us'] = units.runtime_us(
                parsed_args.share, period_us
            )
        return self.answered(
            parsed_args,
            self.client.reservations.create(parsed_args.instance, **fields),
        )


class SetReservation(Show):
    """Change the reservation of a running instance.

    What no option names stays as it is. Of a flavor's reservation this makes
    an override, which goes with the instance from host to host.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        reservation_options.add(parser, required=False)
        options.add_generation(parser)
        options.add_wait(
            parser, 'the agent has answered', options.ANSWER_TIMEOUT_S
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        fields = reservation_options.fields(parsed_args)
        generation = parsed_args.generation
        if parsed_args.share is not None:
            period_us = fields.get('period_us')
            if period_us is None:
                # A share is a part of the period that is there, so it must
                # still be there when the change is made.
                current = self.client.reservations.get(parsed_args.instance)
                period_us = current['period_us']
                if period_us is None:
                    raise exit_codes.UsageError(
                        'instance %s has no period now: give --period'
                        % parsed_args.instance
                    )
                if generation is None:
                    generation = current['generation']
            fields['runtime_us'] = units.runtime_us(
                parsed_args.share, period_us
            )
        if not fields:
            raise exit_codes.UsageError(
                'nothing to change: give one of --share, --runtime, '
                '--period, --mode, --backend or an extra spec'
            )
        return self.answered(
            parsed_args,
            self.client.reservations.update(
                parsed_args.instance, generation=generation, **fields
            ),
        )


class UnsetReservation(Show):
    """Remove an override, so that the flavor's reservation holds again."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        options.add_generation(parser)
        options.add_wait(
            parser, 'the agent has answered', options.ANSWER_TIMEOUT_S
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        return self.answered(
            parsed_args,
            self.client.reservations.delete(
                parsed_args.instance, generation=parsed_args.generation
            ),
        )

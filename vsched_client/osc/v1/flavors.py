# SPDX-License-Identifier: Apache-2.0

"""``openstack cpu flavor``."""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from decimal import Decimal
import typing as ty

from vsched_client import errors
from vsched_client import extra_specs
from vsched_client import nova
from vsched_client.osc import command
from vsched_client.osc import exit_codes
from vsched_client.osc import tables
from vsched_client.osc.v1 import reservation_options
from vsched_client.osc.v1 import reservations
from vsched_client import units

Column = tables.Column

#: Extra specs whose names are not those of the API's fields.
_KEYS = {
    'runtime_us': 'cpu_runtime_us',
    'period_us': 'cpu_period_us',
    'mode': 'cpu_mode',
}

#: The API refuses extra specs of one flavor with these codes.
_INVALID = 'vsched.extra_specs.'


def _text(change: ty.Any) -> str:
    name, before, after = (
        change[key] for key in ('extra_spec', 'before', 'after')
    )
    if after is None:
        return '%s is %s, must be removed' % (name, before)
    return '%s is %s, must be %s' % (
        name,
        'missing' if before is None else before,
        after,
    )


def _texts(found: Iterable[ty.Any]) -> str:
    return '\n'.join(map(_text, found)) or '-'


def _lines(found: Iterable[str]) -> str:
    return '\n'.join(found) or '-'


class _Nova(command.Base):
    """A command that uses Nova as well, with the same token."""

    @property
    def nova_flavors(self) -> nova.Nova:
        """The client of Nova's flavors."""
        return nova.Nova(self.compute)

    def claim(self, flavor: nova.Flavor, specs: Mapping[str, str]) -> ty.Any:
        """Return what a flavor has to claim.

        :param specs: its extra specs, as they are or are going to be.
        """
        return self.client.flavors.claim(specs, flavor.vcpus)

    def write(
        self, flavor: nova.Flavor, after: Mapping[str, str]
    ) -> Iterator[extra_specs.Change]:
        """Change extra specs of a flavor; yield each change that is made."""
        found = extra_specs.changes(flavor.extra_specs, after)
        added = [one for one in found if one['after'] is not None]
        if added:
            self.nova_flavors.set_extra_specs(
                flavor, {one['extra_spec']: str(one['after']) for one in added}
            )
        yield from added
        for one in found[len(added) :]:
            self.nova_flavors.unset_extra_spec(flavor, one['extra_spec'])
            yield one


class _Show(_Nova, command.Show):
    """Base of the commands that print one flavor."""

    columns = (
        Column('id', 'ID'),
        Column('name', 'Name'),
        Column('vcpus', 'vCPUs'),
        Column('share_ppm', 'Share', tables.ppm, reservations.share_ppm),
        Column('runtime_us', 'Runtime', tables.us),
        Column('period_us', 'Period', tables.us),
        Column('mode', 'Mode'),
        Column('backend', 'Requested backend'),
        Column('extra_specs', 'Extra specs'),
        Column('claim_mcpu', 'Claim', tables.mcpu),
        Column('guest_mcpu', 'Claim of vCPUs', tables.mcpu),
        Column('overhead_mcpu', 'Claim of I/O', tables.mcpu),
        Column('claim_extra_specs', 'Claim as extra specs'),
        Column('agrees', 'Nova agrees'),
        Column('differences', 'Differences', _texts),
        Column('notes', 'Notes', _lines),
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'flavor', metavar='<flavor>', help='Name or ID of the flavor'
        )
        return parser

    def row(
        self, flavor: nova.Flavor, specs: Mapping[str, str], claim: ty.Any
    ) -> dict[str, ty.Any]:
        """Return what is shown of a flavor.

        :param specs: those that Nova has.
        """
        found = extra_specs.changes(specs, claim['extra_specs'])
        return {
            'id': flavor.id,
            'name': flavor.name,
            'vcpus': flavor.vcpus,
            **claim,
            'extra_specs': _of(specs, extra_specs.RESERVATION),
            'claim_extra_specs': _of(claim['extra_specs'], *extra_specs.CLAIM),
            'agrees': not found,
            'differences': found,
        }


class ShowFlavor(_Show):
    """Show what a flavor reserves and has to claim in placement for it.

    Exit with 6 when its extra specs in Nova claim something else.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        flavor = self.nova_flavors.flavor(parsed_args.flavor)
        found = self.row(
            flavor, flavor.extra_specs, self.claim(flavor, flavor.extra_specs)
        )
        if not found['agrees']:
            self.exit_code = exit_codes.ExitCode.DIFFERS
            self.report(
                'flavor %s does not claim what it reserves: "openstack cpu '
                'flavor sync" corrects it' % flavor.name
            )
        return self.table(parsed_args, found)


class SetFlavor(_Show):
    """Set the reservation of a flavor, and its claim in placement.

    What no option names stays as it is. Nova's extra specs are changed with
    the user's own token, after the API has checked them. Instances have the
    change when they are built or resized.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        reservation_options.add(
            parser, required=False, back=reservation_options.DEFAULT
        )
        parser.add_argument(
            '--property',
            metavar='<key=value>',
            dest='properties',
            action='append',
            default=[],
            type=reservation_options.pair,
            help='Another extra spec of vsched, as in '
            'vsched:net_rx_pps=1000; without a value it is removed; may be '
            'repeated',
        )
        parser.add_argument(
            '--no-property',
            action='store_true',
            help='Remove all extra specs of vsched before others are set; '
            'alone it ends the reservation and its claim',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        asked = _asked(parsed_args)
        if not (
            asked or parsed_args.no_property or parsed_args.share is not None
        ):
            raise exit_codes.UsageError(
                'nothing to change: give one of --share, --runtime, '
                '--period, --mode, --backend, an extra spec or --no-property'
            )
        flavor = self.nova_flavors.flavor(parsed_args.flavor)
        specs = _changed(flavor.extra_specs, asked, parsed_args.no_property)
        if parsed_args.share is not None:
            specs['vsched:cpu_runtime_us'] = str(
                units.runtime_us(
                    parsed_args.share, reservation_options.period_us(specs)
                )
            )
        claim = self.claim(flavor, specs)
        for one in self.write(flavor, claim['extra_specs']):
            self.report(
                '%s removed' % one['extra_spec']
                if one['after'] is None
                else '%s = %s' % (one['extra_spec'], one['after'])
            )
        return self.table(
            parsed_args, self.row(flavor, claim['extra_specs'], claim)
        )


class SyncFlavors(_Nova, command.List):
    """Correct the claims of flavors, and list each change.

    Claims are computed again from what the flavors reserve. Exit with 1 when
    the reservation of one is invalid; the others are corrected.
    """

    columns = (
        Column('flavor', 'Flavor'),
        Column('extra_spec', 'Extra spec'),
        Column('before', 'Before'),
        Column('after', 'After'),
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'flavors',
            metavar='<flavor>',
            nargs='*',
            help='Name or ID of a flavor',
        )
        parser.add_argument(
            '--all',
            action='store_true',
            help='All flavors with extra specs of vsched',
        )
        parser.add_argument(
            '--dry-run',
            action='store_true',
            help='Change nothing; exit with 6 when there is something to '
            'change',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        if bool(parsed_args.flavors) == parsed_args.all:
            raise exit_codes.UsageError('give flavors or --all, one of both')
        known = self.nova_flavors.flavors()
        chosen = (
            [one for one in known if extra_specs.ours(one.extra_specs)]
            if parsed_args.all
            else [nova.chosen(known, name) for name in parsed_args.flavors]
        )
        made: list[tables.Object] = []
        try:
            # A flavor that is named twice is corrected once.
            for flavor in {one.id: one for one in chosen}.values():
                made.extend(
                    {'flavor': flavor.name, **one}
                    for one in self._sync(flavor, parsed_args.dry_run)
                )
        except errors.ClientError as problem:
            # The changes that were made are listed all the same.
            self.report(str(problem))
            self.exit_code = exit_codes.of(problem)
        return self.table(parsed_args, made)

    def _sync(
        self, flavor: nova.Flavor, dry_run: bool
    ) -> Iterator[extra_specs.Change]:
        try:
            claim = self.claim(flavor, flavor.extra_specs)
        except errors.BadRequest as problem:
            if not problem.code.startswith(_INVALID):
                raise
            self.report('flavor %s: %s' % (flavor.name, problem))
            self.exit_code = exit_codes.ExitCode.ERROR
            return
        for text in claim['notes']:
            self.report('flavor %s: %s' % (flavor.name, text))
        after = claim['extra_specs']
        if not dry_run:
            yield from self.write(flavor, after)
            return
        for one in extra_specs.changes(flavor.extra_specs, after):
            if self.exit_code == exit_codes.ExitCode.DONE:
                self.exit_code = exit_codes.ExitCode.DIFFERS
            yield one


def _asked(parsed_args: argparse.Namespace) -> dict[str, str | None]:
    """Return the extra specs that the options set; None removes one."""
    found: dict[str, str | None] = {}
    for name, text in parsed_args.properties:
        if ':' not in name:
            name = extra_specs.RESERVATION + name
        if not name.startswith(extra_specs.RESERVATION):
            raise exit_codes.UsageError(
                '--property %s: not an extra spec of vsched; "openstack '
                'flavor set" changes others' % ascii(name[:64])
            )
        found[name] = text or None
    for name, value in reservation_options.fields(
        parsed_args, reservation_options.DEFAULT
    ).items():
        found[extra_specs.RESERVATION + _KEYS.get(name, name)] = _value(value)
    return found


def _value(value: ty.Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return format(Decimal(str(value)), 'f')
    return str(value)


def _changed(
    specs: Mapping[str, str], asked: Mapping[str, str | None], only_asked: bool
) -> dict[str, str]:
    """Return extra specs with the changes that were asked for.

    :param only_asked: of those of vsched, the others are removed.
    """
    found = {
        name: text
        for name, text in specs.items()
        if not (only_asked and name.startswith(extra_specs.RESERVATION))
    }
    for name, value in asked.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = value
    return found


def _of(specs: Mapping[str, str], *prefixes: str) -> dict[str, str]:
    return {
        name: text
        for name, text in sorted(specs.items())
        if name.startswith(prefixes)
    }

# SPDX-License-Identifier: Apache-2.0

"""``vsched-manage flavor``: reservations of flavors, and their claims."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import sys
import time
import typing as ty

from oslo_config import cfg

from vsched_api.conf import openstack
from vsched_api.db import session as db
from vsched_api.operations import evaluations
from vsched_api.operations import flavors as operations
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import flavors
from vsched_lib.contract import placement
from vsched_lib.contract import spec_values
from vsched_lib.model import fit
from vsched_lib.openstack import compute
from vsched_lib.openstack import session


class _Problem(Exception):
    """The command cannot be done; the text has the reason."""


def add_commands(subparsers: ty.Any) -> None:
    """Add the commands to an argument parser."""
    flavor = subparsers.add_parser(
        'flavor',
        help='Reservations of flavors, and their claims in placement; Nova '
        'is configured in [nova].',
    )
    commands = flavor.add_subparsers(dest='flavor_command', required=True)
    show = commands.add_parser(
        'show',
        help='Print the reservations of flavors. Exit with 1 when a flavor '
        'does not claim its reservation.',
    )
    show.add_argument(
        'names',
        nargs='*',
        metavar='FLAVOR',
        help='Name or ID; all flavors with extra specs of vsched by default.',
    )
    show.set_defaults(act=_show)
    change = commands.add_parser(
        'set', help='Set the reservation of a flavor, and its claim.'
    )
    change.add_argument('flavor', metavar='FLAVOR', help='Name or ID.')
    change.add_argument(
        'pairs',
        nargs='+',
        metavar='KEY=VALUE',
        help='One of %s; without a value it is taken away.'
        % ', '.join(extra_specs.TABLE),
    )
    change.set_defaults(act=_set)
    sync = commands.add_parser(
        'sync', help='Set the claims of flavors to their reservations.'
    )
    sync.add_argument(
        'names',
        nargs='*',
        metavar='FLAVOR',
        help='Name or ID; all flavors with extra specs of vsched by default.',
    )
    sync.add_argument(
        '--dry-run',
        action='store_true',
        help='Only print the changes; exit with 1 when there are any.',
    )
    sync.set_defaults(act=_sync)


def client(conf: cfg.ConfigOpts) -> compute.Compute:
    """Return a client of Nova.

    :raises session.Unavailable: when Nova is not configured.
    """
    return compute.Compute(session.connect(conf, openstack.NOVA))


def _guarded(
    act: ty.Callable[[cfg.ConfigOpts, compute.Compute], int],
) -> ty.Callable[[cfg.ConfigOpts], int]:
    def run(conf: cfg.ConfigOpts) -> int:
        try:
            return act(conf, client(conf))
        except (
            _Problem,
            compute.Rejected,
            session.Unavailable,
            errors.InvalidExtraSpecs,
        ) as problem:
            print('vsched-manage flavor: %s' % problem, file=sys.stderr)
            return 2

    return run


def ours(flavor: compute.Flavor) -> bool:
    """Return whether a flavor has extra specs of vsched."""
    return any(
        name.startswith(spec_values.PREFIX) or placement.ours(name)
        for name in flavor.extra_specs
    )


def _chosen(
    nova: compute.Compute, names: Sequence[str]
) -> list[compute.Flavor]:
    found = nova.flavors()
    if not names:
        return sorted(filter(ours, found), key=lambda one: one.name)
    chosen = []
    for name in names:
        same = [one for one in found if one.id == name] or [
            one for one in found if one.name == name
        ]
        if not same:
            raise _Problem('there is no flavor %s' % name)
        chosen.append(same[0])
    return chosen


def disagreements(
    flavor: compute.Flavor, io_mcpu: flavors.IoPrice
) -> list[str]:
    """Return what is wrong with a flavor's claim."""
    try:
        change = flavors.claiming(flavor.vcpus, flavor.extra_specs, io_mcpu)
    except errors.InvalidExtraSpecs as problem:
        return ['%s: %s' % one for one in problem.problems]
    return list(_words(flavor, change))


def _words(flavor: compute.Flavor, change: flavors.Change) -> Iterator[str]:
    for name, text in sorted(change.added.items()):
        before = flavor.extra_specs.get(name)
        yield '%s is %s, must be %s' % (
            name,
            'missing' if before is None else before,
            text,
        )
    for name in sorted(change.removed):
        yield '%s is %s, must go' % (name, flavor.extra_specs[name])


def _hint(flavor: compute.Flavor) -> None:
    try:
        text = flavors.unclaimed(flavor.vcpus, flavor.extra_specs)
    except errors.InvalidExtraSpecs:
        return
    if text is not None:
        print('  note: ' + text)


class Prices:
    """The cost of I/O on the most expensive host in the database.

    The database is read once, when the I/O of a flavor is not part of its
    reservation.

    :param conf: with the options of the REST service.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._found: Mapping[str, fit.Host] | None = None

    def of(self, name: str) -> flavors.IoPrice:
        """Return the prices for a flavor; its name is for messages."""

        def cost_mcpu(ask: fit.Ask) -> int:
            if self._found is None:
                self._found = self._read()
            found = operations.io_price(ask, self._found)
            if found.note is not None:
                print('%s: %s' % (name, found.note), file=sys.stderr)
            return found.mcpu

        return cost_mcpu

    def _read(self) -> Mapping[str, fit.Host]:
        database = db.Database(self._conf)
        try:
            return evaluations.Evaluations(database, self._conf).known(
                time.time()
            )
        finally:
            database.dispose()


def _promise(flavor: compute.Flavor) -> str:
    try:
        promise = extra_specs.parse(flavor.extra_specs).reservation
    except errors.InvalidExtraSpecs:
        return 'nothing that makes sense'
    if promise is None:
        return 'no reservation'
    return '%d us every %d us for each of %d vCPUs, claims %d mcpu' % (
        promise.runtime_us,
        promise.period_us,
        flavor.vcpus,
        placement.claim_mcpu(promise, flavor.vcpus),
    )


@_guarded
def _show(conf: cfg.ConfigOpts, nova: compute.Compute) -> int:
    prices = Prices(conf)
    status = 0
    for flavor in _chosen(nova, conf.command.names):
        print('%s: %s' % (flavor.name, _promise(flavor)))
        for line in disagreements(flavor, prices.of(flavor.name)):
            status = 1
            print('  ' + line)
        _hint(flavor)
    return status


@_guarded
def _set(conf: cfg.ConfigOpts, nova: compute.Compute) -> int:
    (flavor,) = _chosen(nova, [conf.command.flavor])
    change = flavors.changed(
        flavor.vcpus,
        flavor.extra_specs,
        _asked(conf.command.pairs),
        Prices(conf).of(flavor.name),
    )
    _apply(nova, flavor, change)
    return 0


def _asked(pairs: Sequence[str]) -> dict[str, str | None]:
    asked: dict[str, str | None] = {}
    for pair in pairs:
        key, equals, value = pair.partition('=')
        key = key.removeprefix(spec_values.PREFIX)
        if not equals or key not in extra_specs.TABLE:
            raise _Problem(
                '%r is not accepted; accepted is KEY=VALUE with '
                'one of %s' % (pair, ', '.join(extra_specs.TABLE))
            )
        asked[spec_values.PREFIX + key] = value or None
    return asked


@_guarded
def _sync(conf: cfg.ConfigOpts, nova: compute.Compute) -> int:
    prices = Prices(conf)
    status = 0
    for flavor in _chosen(nova, conf.command.names):
        try:
            change = flavors.claiming(
                flavor.vcpus, flavor.extra_specs, prices.of(flavor.name)
            )
        except errors.InvalidExtraSpecs as problem:
            print('%s: %s' % (flavor.name, problem), file=sys.stderr)
            status = 2
            continue
        if not conf.command.dry_run:
            _apply(nova, flavor, change)
        elif change:
            status = status or 1
            _print(flavor, change)
    return status


def _apply(
    nova: compute.Compute, flavor: compute.Flavor, change: flavors.Change
) -> None:
    # Extra specs are added before others are deleted: a flavor that claims too
    # much for a moment oversells nothing.
    if change.added:
        nova.set_extra_specs(flavor, change.added)
    for name in sorted(change.removed):
        nova.unset_extra_spec(flavor, name)
    _print(flavor, change)


def _print(flavor: compute.Flavor, change: flavors.Change) -> None:
    for name, text in sorted(change.added.items()):
        print('%s: %s = %s' % (flavor.name, name, text))
    for name in sorted(change.removed):
        print('%s: %s is gone' % (flavor.name, name))
    if not change:
        print('%s: nothing to change' % flavor.name)

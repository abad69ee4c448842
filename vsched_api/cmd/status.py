# SPDX-License-Identifier: Apache-2.0

"""``vsched-status upgrade check``: find problems before an upgrade."""

from collections.abc import Sequence
import importlib.metadata
import itertools
import os
import sys
import time
import typing as ty

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from vsched_api.cmd import flavor
from vsched_api.conf import openstack
from vsched_api.conf import startup
from vsched_api.db import errors
from vsched_api.db import migration
from vsched_api.db import session as db
from vsched_api.operations import hosts
from vsched_lib.contract import snapshot
from vsched_lib.openstack import compute
from vsched_lib.openstack import endpoint
from vsched_lib.openstack import session

Code = upgradecheck.Code
Result = upgradecheck.Result

#: Without this filter nova-scheduler ignores reservations.
FILTER = 'VschedReservationFilter'

#: Group of nova.conf with the filters' connection to the REST service.
FILTERS_GROUP = 'vsched'

_PAGE = 1000
_NAMED = 5

#: The only command, and its options without a value.
_COMMAND = ('upgrade', 'check')
_OF_COMMAND = frozenset(('--json', '--help', '-h'))

_CLI_OPTS = [
    cfg.StrOpt(
        'nova-conf',
        default='/etc/nova/nova.conf',
        metavar='PATH',
        help="nova-scheduler's configuration, if it is on this machine.",
    ),
    cfg.StrOpt(
        'placement-conf',
        default='/etc/placement/placement.conf',
        metavar='PATH',
        help="placement's own configuration, if it is on this machine.",
    ),
]


class Checks(upgradecheck.UpgradeCommands):
    """All checks.

    :ivar conf: with the options of the REST service; set before use.
    """

    conf: cfg.ConfigOpts

    def _database(self) -> Result:
        found, newest = migration.version(self.conf), migration.newest()
        if found == newest:
            return Result(Code.SUCCESS)
        return Result(
            Code.FAILURE,
            'the tables are at %s, this release '
            'needs %s: run vsched-manage db sync' % (found or 'none', newest),
        )

    def _agents(self) -> Result:
        if migration.version(self.conf) != migration.newest():
            return Result(
                Code.WARNING, 'nothing is known before the tables are upgraded'
            )
        database = db.Database(self.conf)
        try:
            down = [
                host.name
                for host in _hosts(database, self.conf.api.host_down_after_s)
                if host.state == hosts.State.DOWN
            ]
        finally:
            database.dispose()
        if not down:
            return Result(Code.SUCCESS)
        return Result(
            Code.WARNING,
            '%d hosts do not report: %s' % (len(down), _some(down)),
        )

    def _placement(self) -> Result:
        conf = _read(
            self.conf.placement_conf,
            'placement',
            [cfg.IntOpt('allocation_conflict_retry_count', default=10)],
        )
        if conf is None:
            return Result(
                Code.SUCCESS,
                '%s is not on this machine; check there that '
                '[placement] allocation_conflict_retry_count is 1'
                % self.conf.placement_conf,
            )
        count = conf.placement.allocation_conflict_retry_count
        if count <= 1:
            return Result(Code.SUCCESS)
        return Result(
            Code.WARNING,
            '[placement] '
            'allocation_conflict_retry_count is %d: placement 14 '
            'to 16%s over-commit hosts when claims arrive at the '
            'same moment; set it to 1 in %s'
            % (count, _installed(), self.conf.placement_conf),
        )

    def _filters(self) -> Result:
        conf = _read(
            self.conf.nova_conf,
            'filter_scheduler',
            [
                cfg.ListOpt('enabled_filters', default=[]),
                cfg.ListOpt(
                    'weight_classes',
                    default=['nova.scheduler.weights.all_weighers'],
                ),
                cfg.MultiStrOpt('available_filters', default=[]),
            ],
        )
        if conf is None:
            return Result(
                Code.SUCCESS,
                '%s is not on this machine; check on a host of '
                'nova-scheduler that %s is enabled'
                % (self.conf.nova_conf, FILTER),
            )
        options = conf.filter_scheduler
        missing = []
        if not any(one.startswith('nova.') for one in options.weight_classes):
            missing.append(
                "weight_classes names none of Nova's own "
                'weighers: it is one list, in which the last '
                'line replaces all others'
            )
        if not any(
            one.startswith('nova_filters.')
            for one in options.available_filters
        ):
            missing.append('available_filters names none of nova_filters')
        if FILTER not in options.enabled_filters:
            missing.append('enabled_filters lacks %s' % FILTER)
        if not missing:
            return Result(Code.SUCCESS)
        return Result(
            Code.WARNING,
            '[filter_scheduler] of %s: %s'
            % (self.conf.nova_conf, '; '.join(missing)),
        )

    def _endpoint(self) -> Result:
        conf = _read(
            self.conf.nova_conf,
            'filter_scheduler',
            [cfg.ListOpt('enabled_filters', default=[])],
            register_filters,
        )
        if conf is None:
            return Result(
                Code.SUCCESS,
                'not checked: %s is not on this machine; run the check on a '
                'host of nova-scheduler' % self.conf.nova_conf,
            )
        if FILTER not in conf.filter_scheduler.enabled_filters:
            return Result(
                Code.SUCCESS, 'not checked: %s is not enabled' % FILTER
            )
        try:
            found = endpoint.problem(
                session.connect(conf, FILTERS_GROUP), snapshot.PATH
            )
        except session.Unavailable as problem:
            found = str(problem)
        if found is None:
            return Result(Code.SUCCESS)
        return Result(
            Code.WARNING,
            'with [%s] of %s no filter learns '
            'anything of hosts: %s'
            % (FILTERS_GROUP, self.conf.nova_conf, found),
        )

    def _flavors(self) -> Result:
        if not session.configured(self.conf, openstack.NOVA):
            return Result(
                Code.SUCCESS, 'not checked: [nova] auth_type is not set'
            )
        try:
            found = flavor.client(self.conf).flavors()
        except (session.Unavailable, compute.Rejected) as problem:
            return Result(Code.WARNING, 'not checked: %s' % problem)
        prices = flavor.Prices(self.conf)
        wrong = [
            one.name
            for one in found
            if flavor.ours(one)
            and flavor.disagreements(one, prices.of(one.name))
        ]
        if not wrong:
            return Result(Code.SUCCESS)
        return Result(
            Code.WARNING,
            '%d flavors do not claim their reservation: %s; see '
            'vsched-manage flavor show' % (len(wrong), _some(wrong)),
        )

    # The interface of the base class: titles and methods.
    _upgrade_checks = (
        ('Database', _database),
        ('Agents', _agents),
        ('Claims at the same moment', _placement),
        ('Filters', _filters),
        ('What filters ask', _endpoint),
        ('Flavors', _flavors),
    )


def _hosts(
    database: db.Database, down_after_s: float
) -> ty.Iterator[hosts.Host]:
    marker: str | None = None
    while True:
        page = hosts.page(database, _PAGE, marker, time.time(), down_after_s)
        yield from page
        if len(page) < _PAGE:
            return
        marker = page[-1].name


def register_filters(conf: cfg.ConfigOpts) -> None:
    """Register the options of the filters' connection to the REST service."""
    session.register_opts(conf, FILTERS_GROUP, 'vsched', None)
    conf.set_default('timeout', 10, group=FILTERS_GROUP)


def _read(
    path: str,
    group: str,
    options: Sequence[cfg.Opt],
    more: ty.Callable[[cfg.ConfigOpts], None] = lambda conf: None,
) -> cfg.ConfigOpts | None:
    """Read options of another service; return None without read access.

    :param more: registers further ones.
    """
    if not os.access(path, os.R_OK):
        return None
    conf = cfg.ConfigOpts()
    conf.register_opts(options, group=group)
    more(conf)
    conf([], default_config_files=[path], default_config_dirs=[])
    return conf


def _installed() -> str:
    try:
        return ' (here: %s)' % importlib.metadata.version(
            'openstack-placement'
        )
    except importlib.metadata.PackageNotFoundError:
        return ''


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ', '.join(names[:_NAMED]) + (
        ' and %d more' % more if more > 0 else ''
    )


def _ordered(args: Sequence[str]) -> list[str]:
    """Return a command line with its command behind the options.

    argparse gives what follows a command to that command only, which has no
    options of ours.
    """
    words = list(args)
    for index, pair in enumerate(itertools.pairwise(words)):
        if pair == _COMMAND:
            del words[index : index + 2]
            last = [word for word in words if word in _OF_COMMAND]
            words = [word for word in words if word not in _OF_COMMAND]
            return [*words, *_COMMAND, *last]
    return words


def main(args: Sequence[str] | None = None) -> int:
    """Run all checks.

    :param args: the command line, that of the process when None; options
        may precede the command or follow it.
    :returns: 0 when all is well, 1 with warnings, 2 with failures.
    """
    checks = Checks()

    def add_commands(subparsers: ty.Any) -> None:
        upgrade = subparsers.add_parser(
            'upgrade', help='Find problems before an upgrade.'
        )
        upgrade.add_argument('what', choices=['check'], metavar='check')
        upgrade.add_argument(
            '--json', action='store_true', help='Print the results as JSON.'
        )

    checks.conf = startup.read(
        'vsched-status',
        _ordered(sys.argv[1:] if args is None else args),
        [
            *_CLI_OPTS,
            cfg.SubCommandOpt(
                'command', title='Commands', handler=add_commands
            ),
        ],
    )
    # oslo.upgradecheck reads --json from this global only.
    upgradecheck.CONF = checks.conf
    try:
        return int(checks.check())
    except errors.DatabaseUnavailable as problem:
        print(problem, file=sys.stderr)
        return 255


if __name__ == '__main__':
    sys.exit(main())

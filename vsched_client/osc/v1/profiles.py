# SPDX-License-Identifier: Apache-2.0

"""``openstack cpu profile``."""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator
import io
import json
import typing as ty

from cliff.formatters import table

from vsched_client.osc import command
from vsched_client.osc import exit_codes
from vsched_client.osc import options
from vsched_client.osc import tables
from vsched_client.osc import terminal
from vsched_client.osc.v1 import jobs
from vsched_client import units

Column = tables.Column

_KINDS = ('error', 'overhead')

#: The options of a run that only error profiles have, by field.
_ERROR_ONLY = (
    'shares_pct',
    'backends',
    'periods_us',
    'seconds',
    'contend',
    'in_guest',
)


#: Has the options that bound the width of tables.
_TABLE = table.TableFormatter()


def _add_host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('host', metavar='<host>', help='Name of the host')


def _add_kind(parser: argparse.ArgumentParser, default: str | None) -> None:
    parser.add_argument(
        '--kind',
        choices=_KINDS,
        default=default,
        help='error: how wrong CPU allocation is; overhead: what I/O costs; '
        'default: %s' % (default or 'both'),
    )


def _add_source(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument(
        '--source',
        metavar='<source>',
        help='benchmark (runs that were asked for) or live (reservations in '
        'use); default: %s' % text,
    )


def _add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--profile-version',
        metavar='<number>',
        type=options.integer(1),
        help='This version of the profile; default: the newest one',
    )


class ListProfiles(command.List):
    """List the profiles of a host that are kept, newest first."""

    columns = (
        Column('kind', 'Kind'),
        Column('source', 'Source'),
        Column('version', 'Version'),
        Column('finished_at', 'Finished', tables.time),
        Column('complete', 'Complete'),
        Column('quick', 'Quick'),
        Column('kernel', 'Kernel'),
        Column('cpus', 'CPUs'),
        Column('notes', 'Notes'),
        Column('uuid', 'Profile', extra=True),
        Column('host', 'Host', extra=True),
        Column('started_at', 'Started', tables.time, extra=True),
        Column('load', 'Load', extra=True),
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        _add_host(parser)
        _add_kind(parser, None)
        _add_source(parser, 'both')
        options.add_limit(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        return self.table(parsed_args, self._rows(parsed_args))

    def _rows(
        self, parsed_args: argparse.Namespace
    ) -> Iterator[tables.Object]:
        for kind in (parsed_args.kind,) if parsed_args.kind else _KINDS:
            for one in self.client.profiles.list(
                parsed_args.host,
                kind,
                source=parsed_args.source,
                limit=parsed_args.limit,
            ):
                yield {'kind': kind, **one}


def _bound(confidence_pct: int) -> ty.Callable[[tables.Object], ty.Any]:
    def size_ppm(point: tables.Object) -> ty.Any:
        for one in point['bounds']:
            if one['confidence_pct'] == confidence_pct:
                return one['size_ppm']
        return None

    return size_ppm


_ERROR_COLUMNS = (
    Column('source', 'Source'),
    Column('version', 'Version'),
    Column('backend', 'Backend'),
    Column('period_us', 'Period', tables.us),
    Column('share_ppm', 'Share', tables.ppm),
    Column('contenders', 'Contenders'),
    Column('probe', 'Probe', extra=True),
    Column('n', 'Windows'),
    Column('mean_ppm', 'Mean error', tables.error_ppm),
    Column('abs_p50_ppm', 'p50 size', tables.ppm, extra=True),
    Column('abs_p95_ppm', 'p95 size', tables.ppm, extra=True),
    Column('abs_p99_ppm', 'p99 size', tables.ppm),
    Column('min_ppm', 'Lowest', tables.error_ppm),
    Column('max_ppm', 'Highest', tables.error_ppm),
    Column('bound_80_ppm', 'Bound (80 %)', tables.ppm, _bound(80)),
    Column('bound_95_ppm', 'Bound (95 %)', tables.ppm, _bound(95), True),
)

_OVERHEAD_COLUMNS = (
    Column('source', 'Source'),
    Column('version', 'Version'),
    Column('term', 'Event'),
    Column('cost_ns', 'Cost', tables.ns),
    Column('error_ns', 'Standard error', tables.ns),
    Column('good', 'Used'),
    Column('r2', 'R2'),
    Column('n', 'Observations'),
)

#: By kind: the columns, and the key of a profile with their rows.
_SHOWN = {
    'error': (_ERROR_COLUMNS, 'points'),
    'overhead': (_OVERHEAD_COLUMNS, 'prices'),
}


class ShowProfile(command.List):
    """Show a profile of a host: errors, or the cost of I/O.

    One row for each share, backend and period that was measured, or for each
    kind of event that has a price.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        _add_host(parser)
        _add_kind(parser, 'error')
        _add_source(parser, 'both')
        _add_version(parser)
        return parser

    def columns_of(self, parsed_args: argparse.Namespace) -> tables.Columns:
        """Return the columns of this kind of profile."""
        return _SHOWN[parsed_args.kind][0]

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        found = self.client.profiles.newest(
            parsed_args.host,
            parsed_args.kind,
            source=parsed_args.source,
            version=parsed_args.profile_version,
        )
        for one in found:
            for note in one['notes']:
                self.report('note: ' + note)
        return self.table(parsed_args, _rows(parsed_args.kind, found))


def _rows(kind: str, found: Iterable[tables.Object]) -> list[tables.Object]:
    """Return a row for each point or price of profiles."""
    key = _SHOWN[kind][1]
    return [{**one, **row} for one in found for row in one[key]]


class CreateProfile(jobs.Show):
    """Have a host measure itself; prints the job that does it."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        _add_host(parser)
        _add_kind(parser, 'error')
        parser.add_argument(
            '--quick',
            action='store_true',
            default=None,
            help='A short run, whose bounds are wide',
        )
        parser.add_argument(
            '--share',
            dest='shares_pct',
            metavar='<share>',
            action='append',
            type=_share_pct,
            help='Share to measure, as in 0.1, 100m or a percentage; may be '
            'repeated (error)',
        )
        parser.add_argument(
            '--backend',
            dest='backends',
            metavar='<backend>',
            action='append',
            help='Backend to measure; may be repeated (error)',
        )
        parser.add_argument(
            '--period',
            dest='periods_us',
            metavar='<duration>',
            action='append',
            type=options.quantity(units.duration_us),
            help='Period to measure, as in 10ms; may be repeated (error)',
        )
        parser.add_argument(
            '--seconds',
            metavar='<number>',
            type=options.integer(1, 3600),
            help='Windows of one second at each point (error)',
        )
        parser.add_argument(
            '--contend',
            metavar='<number>',
            type=options.integer(0, 256),
            help='Hogs outside of the reservation (error)',
        )
        parser.add_argument(
            '--in-guest',
            action='store_true',
            default=None,
            help='Give the share to the vCPU of a calibration VM (error)',
        )
        options.add_wait(parser, 'the job has ended', options.JOB_TIMEOUT_S)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        fields = {
            name: getattr(parsed_args, name)
            for name in ('quick', *_ERROR_ONLY)
            if getattr(parsed_args, name) is not None
        }
        if parsed_args.kind != 'error' and fields.keys() - {'quick'}:
            raise exit_codes.UsageError(
                'a profile of kind %s is measured with --quick or without '
                'any option' % parsed_args.kind
            )
        return self.answered(
            parsed_args,
            self.client.profiles.create(
                parsed_args.host, parsed_args.kind, **fields
            ),
        )


def _share_pct(text: str) -> float:
    return float(options.quantity(units.share)(text) * 100)


class ExportProfile(command.Base):
    """Write a whole profile of a host.

    A table has the rows of "cpu profile show".
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        _add_host(parser)
        _add_kind(parser, 'error')
        _add_source(parser, 'benchmark')
        _add_version(parser)
        parser.add_argument(
            '-f',
            '--format',
            choices=('csv', 'json', 'table', 'yaml'),
            default='csv',
            help='csv: one row for each point; json and yaml: as the API has '
            'it; table: for people; default: csv',
        )
        _TABLE.add_argument_group(parser)
        parser.add_argument(
            '-o',
            '--output',
            metavar='<file>',
            help='File to write; default: standard output',
        )
        options.add_wait(
            parser,
            'an unfinished job of the host that measures such a profile has '
            'ended',
            options.JOB_TIMEOUT_S,
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Write the profile."""
        if parsed_args.wait:
            for job in self.client.jobs.list(
                host=parsed_args.host,
                states=('queued', 'running'),
                kinds=('profile-%s' % parsed_args.kind,),
            ):
                job = jobs.finished(self, parsed_args, job)
                if job['state'] != 'done':
                    self.refuse(
                        'host %s: the job is %s: %s'
                        % (job['host'], job['state'], job['detail'])
                    )
                    return
        text = self._text(parsed_args)
        if parsed_args.output is None:
            if self.app.stdout.isatty():
                text = terminal.clean_lines(text)
            self.app.stdout.write(text)
            return
        try:
            with open(parsed_args.output, 'w', encoding='utf-8') as file:
                file.write(text)
        except OSError as problem:
            raise exit_codes.UsageError(
                'cannot write %s: %s' % (parsed_args.output, problem.strerror)
            ) from None

    def _text(self, parsed_args: argparse.Namespace) -> str:
        chosen = {
            'source': parsed_args.source,
            'version': parsed_args.profile_version,
        }
        if parsed_args.format == 'csv':
            return str(
                self.client.profiles.csv(
                    parsed_args.host, parsed_args.kind, **chosen
                )
            )
        chosen['source'] = chosen['source'] or 'benchmark'
        found = self.client.profiles.newest(
            parsed_args.host, parsed_args.kind, **chosen
        )
        match parsed_args.format:
            case 'yaml':
                return _yaml(list(found))
            case 'table':
                return _table(parsed_args, _rows(parsed_args.kind, found))
        return json.dumps(list(found), indent=2) + '\n'


def _yaml(found: ty.Any) -> str:
    # Only this format needs it.
    import yaml

    return str(yaml.safe_dump(found, sort_keys=False))


def _table(
    parsed_args: argparse.Namespace, rows: Iterable[tables.Object]
) -> str:
    text = io.StringIO()
    shown = tables.visible(tables.TABLE, _SHOWN[parsed_args.kind][0], ())
    names, cells = tables.of_list(tables.TABLE, shown, rows)
    _TABLE.emit_list(names, cells, text, parsed_args)
    return text.getvalue()

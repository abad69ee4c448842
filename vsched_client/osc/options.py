# SPDX-License-Identifier: Apache-2.0

"""Options that several commands have, and their types."""

import argparse
from collections.abc import Callable
from collections.abc import Sequence
import datetime
import re
import typing as ty

from vsched_client import units

T = ty.TypeVar('T')

_UUID = re.compile(
    r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z', re.ASCII | re.IGNORECASE
)
_MAX_INTEGER = 2**63 - 1

#: How long commands wait for an agent, and for a job, in seconds.
ANSWER_TIMEOUT_S = 60
JOB_TIMEOUT_S = 24 * 3600


def quantity(read: Callable[[str], T]) -> Callable[[str], T]:
    """Return the type of an option from a function of ``units``."""

    def parse(text: str) -> T:
        try:
            return read(text)
        except units.InvalidQuantity as problem:
            raise argparse.ArgumentTypeError(str(problem)) from None

    return parse


def uuid(text: str) -> str:
    """Read a UUID."""
    if _UUID.match(text) is None:
        raise argparse.ArgumentTypeError(
            '%s is not a UUID; accepted: as in '
            '6f1c0e5a-2b7d-4c39-9a41-0d8e5f7b6c12' % ascii(text[:64])
        )
    return text.lower()


def integer(minimum: int, maximum: int = _MAX_INTEGER) -> Callable[[str], int]:
    """Return the type of an option with a whole number."""

    def parse(text: str) -> int:
        if re.fullmatch('[0-9]{1,19}', text, re.ASCII):
            value = int(text)
            if minimum <= value <= maximum:
                return value
        raise argparse.ArgumentTypeError(
            '%s is not accepted; accepted: a whole number from %d to %d'
            % (ascii(text[:64]), minimum, maximum)
        )

    return parse


def decimal(minimum: float, maximum: float) -> Callable[[str], float]:
    """Return the type of an option with a number."""

    def parse(text: str) -> float:
        if re.fullmatch(r'[0-9]{1,9}(\.[0-9]{1,9})?', text, re.ASCII):
            value = float(text)
            if minimum <= value <= maximum:
                return value
        raise argparse.ArgumentTypeError(
            '%s is not accepted; accepted: a number from %g to %g'
            % (ascii(text[:64]), minimum, maximum)
        )

    return parse


def sort_order(keys: Sequence[str]) -> Callable[[str], tuple[str, bool]]:
    """Return the type of an option with what the API sorts a list by.

    It reads a key, and whether the order is descending.
    """

    def parse(text: str) -> tuple[str, bool]:
        key, colon, direction = text.partition(':')
        if key in keys and (not colon or direction in ('asc', 'desc')):
            return key, direction == 'desc'
        raise argparse.ArgumentTypeError(
            '%s is not accepted; accepted: one of %s, with :asc or :desc'
            % (ascii(text[:64]), ', '.join(keys))
        )

    return parse


def time(text: str) -> str:
    """Read a time in ISO 8601; without a zone it is UTC."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            '%s is no time; accepted: ISO 8601, as in 2027-01-15T08:00:00Z'
            % ascii(text[:64])
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return moment.isoformat()


def add_instance(parser: argparse.ArgumentParser) -> None:
    """Add the argument for an instance."""
    parser.add_argument(
        'instance',
        metavar='<instance>',
        type=uuid,
        help='UUID of the instance, as in "openstack server list"',
    )


def add_instances(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the option that selects instances.

    :param text: what is selected of one.
    """
    parser.add_argument(
        '--instance',
        metavar='<instance>',
        dest='instances',
        action='append',
        default=[],
        type=uuid,
        help='%s; may be repeated, up to 100 times' % text,
    )


def add_limit(
    parser: argparse.ArgumentParser, default: int | None = None
) -> None:
    """Add the option for the length of a list."""
    parser.add_argument(
        '--limit',
        metavar='<number>',
        type=integer(1),
        default=default,
        help='Most items to list; default: %s'
        % ('all' if default is None else default),
    )


def add_host(parser: argparse.ArgumentParser) -> None:
    """Add the option that selects a host."""
    parser.add_argument(
        '--host', metavar='<host>', help='Only those of this host'
    )


def add_flavor(parser: argparse.ArgumentParser) -> None:
    """Add the option that selects servers of a flavor."""
    parser.add_argument(
        '--flavor',
        metavar='<flavor>',
        help='Only those of servers of the flavor with this name',
    )


def add_project(parser: argparse.ArgumentParser) -> None:
    """Add the option that selects servers of a project."""
    parser.add_argument(
        '--server-project',
        metavar='<project-id>',
        help='Only those of servers of this project',
    )


def add_server_name(parser: argparse.ArgumentParser) -> None:
    """Add the option that selects servers by their name."""
    parser.add_argument(
        '--server-name',
        metavar='<name>',
        help='Only those of servers with this name',
    )


def add_server(parser: argparse.ArgumentParser) -> None:
    """Add the options that select servers by what Nova knows of them."""
    add_project(parser)
    add_server_name(parser)
    add_flavor(parser)


def add_sort(parser: argparse.ArgumentParser, keys: Sequence[str]) -> None:
    """Add the option with what the API sorts a list by.

    :param keys: the first one is the default.
    """
    parser.add_argument(
        '--sort',
        metavar='<key>[:<direction>]',
        type=sort_order(keys),
        default=(None, False),
        help='Have the API sort the list before --limit ends it, by one of '
        '%s; direction: asc or desc; default: %s:asc'
        % (', '.join(keys), keys[0]),
    )


def add_times(parser: argparse.ArgumentParser, subject: str) -> None:
    """Add the options that select a part of the time.

    :param subject: what is in it.
    """
    parser.add_argument(
        '--start',
        metavar='<time>',
        type=time,
        help='Only %s from this time on (ISO 8601)' % subject,
    )
    parser.add_argument(
        '--end',
        metavar='<time>',
        type=time,
        help='Only %s before this time (ISO 8601)' % subject,
    )


def add_generation(parser: argparse.ArgumentParser) -> None:
    """Add the option for the generation that a change is based on."""
    parser.add_argument(
        '--generation',
        metavar='<number>',
        type=integer(0),
        help='Change nothing unless this generation is still the newest; '
        'exit with 5 otherwise',
    )


def add_wait(
    parser: argparse.ArgumentParser, subject: str, timeout_s: int
) -> None:
    """Add the options for waiting.

    :param subject: what is waited for.
    :param timeout_s: default of the time limit.
    """
    parser.add_argument(
        '--wait',
        action='store_true',
        help='Wait until %s; the exit code reports the result' % subject,
    )
    add_timeout(parser, timeout_s)


def add_timeout(parser: argparse.ArgumentParser, timeout_s: int) -> None:
    """Add the option for the time limit of waiting."""
    parser.add_argument(
        '--timeout',
        metavar='<duration>',
        type=quantity(units.duration_us),
        default=timeout_s * 1_000_000,
        help='How long to wait, as in 90s; exit with 4 after that; '
        'default: %ds' % timeout_s,
    )


def timeout_s(parsed_args: argparse.Namespace) -> float:
    """Return the time limit of waiting, in seconds."""
    return float(parsed_args.timeout / 1_000_000)

# SPDX-License-Identifier: Apache-2.0

"""Options that describe a reservation."""

import argparse
from collections.abc import Mapping
import typing as ty

from vsched_client.osc import exit_codes
from vsched_client.osc import options
from vsched_client import units

#: The period of a new reservation that names none, as in the API.
DEFAULT_PERIOD_US = 20_000

#: The extra spec with the period of a flavor.
_PERIOD = 'vsched:cpu_period_us'

#: Words that give a field back: to the host, to the flavor, and from the
#: flavor to the default.
_ANY, FLAVOR, DEFAULT = 'any', 'flavor', 'default'

#: What an override may set beside the reservation, and its titles.
EXTRA_SPECS: Mapping[str, str] = {
    'io_charging': 'I/O charging',
    'max_alloc_error_pct': 'Largest error (%)',
    'balloon': 'Ballooning',
    'min_vcpus': 'Fewest vCPUs',
    'weight': 'Weight',
    'comm_aware': 'Divided periods',
}


def add(
    parser: argparse.ArgumentParser, required: bool, back: str = FLAVOR
) -> None:
    """Add the options.

    :param required: whether a share or a runtime has to be given.
    :param back: the word that gives an extra spec back.
    """
    amount = parser.add_mutually_exclusive_group(required=required)
    amount.add_argument(
        '--share',
        metavar='<share>',
        type=options.quantity(units.share),
        help='Share of a CPU for each vCPU: a part (0.6), milli-CPU (600m) or '
        'a percentage; of the period that is given, or else in force',
    )
    amount.add_argument(
        '--runtime',
        metavar='<duration>',
        type=options.quantity(units.duration_us),
        help='CPU time for each vCPU in every period, as in 6ms or 500us',
    )
    parser.add_argument(
        '--period',
        metavar='<duration>',
        type=options.quantity(units.duration_us),
        help='Length of the period, as in 10ms%s'
        % ('; default: 20ms' if required else ''),
    )
    parser.add_argument(
        '--mode',
        metavar='<mode>',
        help='capped: the share is a guarantee and a cap; work_conserving: '
        'idle CPU time may be used as well',
    )
    parser.add_argument(
        '--backend',
        metavar='<backend>',
        help='What has to enforce it: deadline or cfs; any: the best that '
        'the host has',
    )
    parser.add_argument(
        '--io-charging',
        metavar='<word>',
        help="How the host's work on its I/O is charged: auto, charge, "
        'overprovision or none; %s'
        % ('flavor: as the flavor has it' if back == FLAVOR else 'or default'),
    )
    parser.add_argument(
        '--max-alloc-error-pct',
        metavar='<percent>',
        type=_or(back, options.decimal(0.1, 100)),
        help='Largest error that the host may have shown, in percent of the '
        'reservation; or %s' % back,
    )
    parser.add_argument(
        '--balloon',
        metavar='<word>',
        help='Whether vCPUs may be taken offline: auto or off; or %s' % back,
    )
    parser.add_argument(
        '--min-vcpus',
        metavar='<number>',
        type=_or(back, options.integer(1, 1024)),
        help='Fewest vCPUs that ballooning leaves online; or %s' % back,
    )
    parser.add_argument(
        '--weight',
        metavar='<number>',
        type=_or(back, options.integer(1, 10_000)),
        help='Weight against other instances when ballooning divides CPUs; '
        'or %s' % back,
    )
    parser.add_argument(
        '--comm-aware',
        metavar='<yes|no>',
        type=_or(back, _boolean),
        help='Whether its periods are divided while it waits on packets: '
        'yes or no; or %s' % back,
    )


def fields(
    parsed_args: argparse.Namespace, back: str = FLAVOR
) -> dict[str, ty.Any]:
    """Return the fields of the API that the options set, but for a share.

    :param back: the word that gives an extra spec back; it is None here.
    """
    found: dict[str, ty.Any] = {}
    for name, value in (
        ('runtime_us', parsed_args.runtime),
        ('period_us', parsed_args.period),
        ('mode', parsed_args.mode),
        ('backend', parsed_args.backend),
        *((name, getattr(parsed_args, name)) for name in EXTRA_SPECS),
    ):
        if value is not None:
            default = _ANY if name == 'backend' else back
            found[name] = None if value == default else value
    return found


def period_us(specs: Mapping[str, str]) -> int:
    """Return the period of a flavor, which a share is a part of.

    :param specs: the flavor's extra specs.
    :raises exit_codes.UsageError: when it has one that is no number.
    """
    text = specs.get(_PERIOD, str(DEFAULT_PERIOD_US))
    try:
        return options.integer(1)(text)
    except argparse.ArgumentTypeError as problem:
        raise exit_codes.UsageError('%s: %s' % (_PERIOD, problem)) from None


def pair(text: str) -> tuple[str, str]:
    """Read an extra spec with its value."""
    name, equals, value = text.partition('=')
    if not equals or not name:
        raise argparse.ArgumentTypeError(
            '%s is not accepted; accepted: KEY=VALUE' % ascii(text[:64])
        )
    return name, value


def _boolean(text: str) -> bool:
    known = {'yes': True, 'true': True, 'no': False, 'false': False}
    if text.lower() not in known:
        raise argparse.ArgumentTypeError(
            '%s is not accepted; accepted: yes or no' % ascii(text[:64])
        )
    return known[text.lower()]


def _or(
    back: str, read: ty.Callable[[str], ty.Any]
) -> ty.Callable[[str], ty.Any]:
    def parse(text: str) -> ty.Any:
        return text if text == back else read(text)

    return parse

# SPDX-License-Identifier: Apache-2.0

"""Shares of a CPU and durations, as operators write and read them.

Arithmetic is exact; a runtime is rounded up once, so that it is never less
than the share that was asked for.
"""

from fractions import Fraction
import math
import re

MCPU_PER_CPU = 1000
PPM = 1_000_000

#: The longest duration that the API accepts as a number of microseconds.
_MAX_US = 2**63 - 1

_SHARES = '60%, 0.6 or 600m'
_DURATIONS = '500us, 10ms or 1s'

_SHARE = re.compile(r'([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(%|m|)\Z', re.ASCII)
_DIVISORS = {'%': 100, 'm': MCPU_PER_CPU, '': 1}

_DURATION = re.compile(
    r'([0-9]{1,18}(?:\.[0-9]{1,9})?) ?(us|µs|μs|ms|s)\Z', re.ASCII
)
_MICROSECONDS = {'us': 1, 'µs': 1, 'μs': 1, 'ms': 1000, 's': 1_000_000}


class InvalidQuantity(ValueError):
    """A text that is no such quantity; it names what is accepted."""


def cpus(text: str) -> Fraction:
    """Read an amount of CPU time per time, in CPUs.

    :param text: percent of a CPU (``150%``), CPUs (``1.5``) or milli-CPU
        (``1500m``).
    :raises InvalidQuantity: for anything else, and for nothing at all.
    """
    found = _SHARE.match(text)
    if found is None:
        raise InvalidQuantity(
            '%s is no share of a CPU; accepted: a number as in %s'
            % (ascii(text[:64]), _SHARES)
        )
    value = Fraction(found[1]) / _DIVISORS[found[2]]
    if not value:
        raise InvalidQuantity(
            '%s is nothing; accepted: a share above 0, as in %s'
            % (ascii(text), _SHARES)
        )
    return value


def share(text: str) -> Fraction:
    """Read a share of one CPU, which is what one vCPU can use.

    :raises InvalidQuantity: for anything else than a share from above 0 to 1.
    """
    value = cpus(text)
    if value > 1:
        raise InvalidQuantity(
            '%s is more than one CPU, which one vCPU cannot use; accepted: '
            'up to 100%%, as in %s' % (ascii(text), _SHARES)
        )
    return value


def mcpu(text: str) -> int:
    """Read an amount as :func:`cpus` does, in milli-CPU, rounded up."""
    return math.ceil(cpus(text) * MCPU_PER_CPU)


def duration_us(text: str) -> int:
    """Read a duration, in microseconds.

    :raises InvalidQuantity: unless it is a whole number of microseconds, of
        one at least, with its unit.
    """
    found = _DURATION.match(text)
    if found is None:
        raise InvalidQuantity(
            '%s is no duration; accepted: a number with its unit, as in %s'
            % (ascii(text[:64]), _DURATIONS)
        )
    value = Fraction(found[1]) * _MICROSECONDS[found[2]]
    if value.denominator != 1 or not 1 <= value <= _MAX_US:
        raise InvalidQuantity(
            '%s is not a whole number of microseconds from 1 to %d; '
            'accepted: as in %s' % (ascii(text), _MAX_US, _DURATIONS)
        )
    return int(value)


def runtime_us(part: Fraction, period_us: int) -> int:
    """Return the runtime that is a share of a period, rounded up.

    :param part: above 0, at most 1.
    """
    return math.ceil(part * period_us)


def share_ppm(runtime_us: int | None, period_us: int | None) -> int | None:
    """Return which share of a period a runtime is; None without either."""
    if runtime_us is None or not period_us:
        return None
    return round(Fraction(runtime_us * PPM, period_us))


def format_ppm(value: float) -> str:
    """Format a part in ppm as percent, as in ``60 %``."""
    return '%s %%' % _number(value / 10_000)


def format_error_ppm(value: float) -> str:
    """Format an error in ppm as percent with its sign, as in ``+0.31 %``."""
    return '%+.2f %%' % (value / 10_000)


def format_mcpu(value: float) -> str:
    """Format milli-CPU as CPUs, as in ``1.8 CPU``."""
    return '%s CPU' % _number(value / MCPU_PER_CPU)


def format_us(value: float) -> str:
    """Format microseconds in the largest unit with a whole part: ``10 ms``."""
    for unit, length in (('s', 1_000_000), ('ms', 1000)):
        if abs(value) >= length:
            return '%s %s' % (_number(value / length), unit)
    return '%s us' % _number(value)


def format_seconds(value: float) -> str:
    """Format seconds, as in ``1 h 5 min`` or ``12.3 s``."""
    if value < 60:
        return '%s s' % _number(value)
    minutes, seconds = divmod(round(value), 60)
    if minutes < 60:
        return '%d min %d s' % (minutes, seconds)
    return '%d h %d min' % divmod(minutes, 60)


def _number(value: float) -> str:
    """Format with four significant digits, or all before the point."""
    if abs(value) >= 1000:
        return '%d' % round(value)
    return '%.4g' % value

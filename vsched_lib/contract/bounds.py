# SPDX-License-Identifier: Apache-2.0

"""What the fields of messages accept: ranges, lengths, character sets.

A field of a message is annotated with one of the types below, or with one
built from :class:`Range`, :class:`Text`, :class:`Items` and :class:`Json`.
:mod:`vsched_lib.contract.wire` applies the bound when it reads a message and
refuses to read a field that declares none. Tests derive valid and invalid
messages from the same declarations.

Bounds are far beyond what a healthy host sends. They keep messages storable
in every database and cheap to compute with.
"""

import dataclasses
import re
import typing as ty

#: The largest integer that every database stores.
MAX_INTEGER = 2**63 - 1

#: Integers up to here are exact in every JSON reader.
MAX_COUNT = 2**53 - 1


@dataclasses.dataclass(frozen=True, slots=True)
class Range:
    """The numbers that a field accepts, both ends included."""

    low: float
    high: float

    def __str__(self) -> str:
        return 'from %s to %s' % (self.low, self.high)


@dataclasses.dataclass(frozen=True, slots=True)
class Text:
    """The strings that a field accepts.

    :param max_chars: the maximum length.
    :param pattern: what the whole string has to match; None for any.
    :param meaning: description of what is accepted.
    :param clip: the string is only shown to people: it is cut to its
        maximum length, and characters that no database stores are replaced.
        Otherwise a string out of bounds is refused.
    """

    max_chars: int
    pattern: str | None = None
    meaning: str = 'text'
    clip: bool = False

    def __str__(self) -> str:
        return '%s of at most %d characters' % (self.meaning, self.max_chars)


@dataclasses.dataclass(frozen=True, slots=True)
class Items:
    """How many items a list has.

    :param columns: the items are messages, and may be sent by column
        (:mod:`vsched_lib.contract.columns`).
    """

    high: int
    low: int = 0
    columns: bool = False

    def __str__(self) -> str:
        return 'a list of %d to %d items' % (self.low, self.high)


@dataclasses.dataclass(frozen=True, slots=True)
class Json:
    """The JSON objects that a field accepts.

    :param depth: how deep objects and lists nest, itself included.
    :param values: how many values there are at all depths together.
    :param key_chars: the maximum length of a key.
    :param chars: the maximum length of a string.
    """

    depth: int = 4
    values: int = 256
    key_chars: int = 64
    chars: int = 4000

    def __str__(self) -> str:
        return (
            'an object of at most %d values, nested at most %d deep, '
            'with keys of at most %d and strings of at most %d '
            'characters and numbers of at most 64 bits'
            % (self.values, self.depth, self.key_chars, self.chars)
        )


# No control characters and no half of a surrogate pair.
_PRINTABLE = r'[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]'

#: Characters that are replaced in text that is only shown.
UNPRINTABLE = re.compile('[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]')

# Strings

#: As ``str(uuid.UUID())`` writes it: one UUID has one form only.
UUID_PATTERN = r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'
Uuid = ty.Annotated[
    str,
    Text(
        36, UUID_PATTERN, 'a UUID in canonical form (lower case, with hyphens)'
    ),
]

#: The name of a host, by which it is found: MariaDB ignores blanks at the
#: end when it compares.
HOST_NAME_PATTERN = r'(?!\s)%s{1,255}(?<!\s)' % _PRINTABLE
HostName = ty.Annotated[
    str,
    Text(
        255,
        HOST_NAME_PATTERN,
        'a name without control characters and without leading or trailing '
        'blanks, not empty,',
    ),
]

#: A code, a backend, a mode: compared, never shown as a sentence.
WORD_PATTERN = r'[!-~]+'
Word = ty.Annotated[
    str, Text(64, WORD_PATTERN, 'printable ASCII without blanks, not empty,')
]

#: One run of one agent: 128 random bits.
Epoch = ty.Annotated[str, Text(32, r'[0-9a-f]{32}', '32 hexadecimal digits')]

#: Shown to people, not compared.
Name = ty.Annotated[str, Text(255, clip=True)]
Sentence = ty.Annotated[str, Text(4000, clip=True)]

# Numbers

#: A time: 9999-12-31T23:00:00Z is the last full hour with an ISO 8601 form.
Seconds = ty.Annotated[float, Range(0.0, 253_402_297_200.0)]
Count = ty.Annotated[int, Range(0, MAX_COUNT)]
#: Numbers that are handed out upwards, such as generations.
Number = ty.Annotated[int, Range(0, MAX_INTEGER)]
#: What an agent numbers its batches with.
BatchNumber = ty.Annotated[int, Range(0, 2**53)]
Cpus = ty.Annotated[int, Range(0, 65_536)]
Cpu = ty.Annotated[int, Range(0, 65_535)]
#: Into how many parts runtime and period are divided.
Granularity = ty.Annotated[int, Range(1, 1024)]
Vcpus = ty.Annotated[int, Range(0, 65_536)]
#: Bandwidth: that of 65 536 CPUs at most.
Mcpu = ty.Annotated[int, Range(-65_536_000, 65_536_000)]
#: Runtimes, periods, ticks: an hour at most.
Microseconds = ty.Annotated[int, Range(0, 3_600_000_000)]
#: CPU time of all CPUs of a host in one interval.
CpuTime = ty.Annotated[int, Range(0, 2**53 - 1)]
#: The length of an interval: a hundred days at most.
Interval = ty.Annotated[int, Range(0, 8_640_000_000_000)]
Milliseconds = ty.Annotated[int, Range(0, 8_640_000_000)]
#: A part of something, e.g. of a CPU or of work done.
Part = ty.Annotated[int, Range(0, 1_000_000)]
#: An error of a measurement. It is above -100 %; a share of a thousandth of
#: a percent that gets all of a CPU is off by ten million percent.
Error = ty.Annotated[int, Range(-(10**12), 10**12)]
#: A bound that policy sets.
BoundPpm = ty.Annotated[int, Range(0, 10**12)]
Confidence = ty.Annotated[float, Range(1e-9, 1 - 1e-12)]
#: The CPU time of one event, in nanoseconds: a second at most.
MAX_PRICE_NS = 1e9
Price = ty.Annotated[float, Range(0.0, MAX_PRICE_NS)]
Samples = ty.Annotated[int, Range(0, MAX_COUNT)]
Figure = ty.Annotated[float, Range(-1e18, 1e18)]
Load = ty.Annotated[float, Range(0.0, 1e9)]

# Objects

Figures = ty.Annotated[dict[str, ty.Any], Json()]
Prices = ty.Annotated[dict[str, ty.Any], Json(depth=1, values=64)]

# SPDX-License-Identifier: Apache-2.0

"""Samples as text: many of them in one value.

A JSON array of arrays, the values of each in the order of :class:`Sample`.
A release reads no more values of a sample than it has fields for. What a later
one adds is therefore in a value of its own, which an earlier one does not
read, in the same order: executions, which are an empty array where they are
unknown.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import json
import math
import re
import typing as ty

from vsched_lib.model import executions


class Sample(ty.NamedTuple):
    """A ``messages.UsageSample``, in the order in which it is packed."""

    instance_uuid: str
    at: float
    interval_us: int
    guest_us: int
    wait_us: int
    promised_us: int | None
    direct_us: int = 0
    direct_wait_us: int = 0
    shared_us: int = 0
    wakeups: int = 0
    net_rx_packets: int = 0
    net_tx_packets: int = 0
    disk_read_requests: int = 0
    disk_write_requests: int = 0
    # In a value of its own: executions.Counts.
    executions: tuple[int, ...] | None = None


#: How many samples one value holds at most; 150 kB.
MAX_SAMPLES = 1000

#: The place of ``executions`` in a sample.
EXECUTIONS = Sample._fields.index('executions')
_COUNTS = len(executions.COUNTS)

_encode = json.JSONEncoder(
    separators=(',', ':'), check_circular=False, allow_nan=False
).encode
_decoder = json.JSONDecoder()
# The second value of each sample. There is no bracket in a UUID.
_TIME = re.compile(r'\["[^"]*",([^,]+),')
_HEAD = re.compile(r'\["([^"]*)",([^,]+),')


def pack(samples: Sequence[Sample]) -> str:
    """Return samples without executions as text; their order is kept."""
    return _encode([sample[:EXECUTIONS] for sample in samples])


def pack_executions(samples: Sequence[Sample]) -> str | None:
    """Return the executions of samples as text; None if all are unknown."""
    found = [
        # A newer agent may report more.
        sample.executions[:_COUNTS] if sample.executions else ()
        for sample in samples
    ]
    return _encode(found) if any(found) else None


def unpack(text: str, counts: str | None = None) -> list[Sample]:
    """Return what was packed.

    :param counts: the executions of the same samples; None when they are
        unknown.
    """
    if counts is None:
        return [Sample(*values) for values in _decoder.decode(text)]
    return [
        Sample._make((*values, tuple(more) or None))
        for values, more in zip(
            _decoder.decode(text), _decoder.decode(counts), strict=True
        )
    ]


def times(text: str) -> list[float]:
    """The moments of packed samples, in their order, without the rest.

    A twentieth of the work of :func:`unpack`.
    """
    return list(map(float, _TIME.findall(text)))


def heads(text: str) -> list[tuple[str, float]]:
    """The instances and moments of packed samples, without the rest."""
    return [(uuid, float(at)) for uuid, at in _HEAD.findall(text)]


def unpack_one(
    text: str, instance_uuid: str, counts: str | None = None
) -> Iterator[tuple[int, Sample]]:
    """Yield the samples of one instance and their places.

    The others are not read.

    :param counts: as of :func:`unpack`.
    """
    # There is no bracket inside of a sample, nor in a UUID.
    start = '["%s"' % instance_uuid
    found = text.find(start)
    each = counts and counts[2:-2].split('],[')
    while found >= 0:
        values, end = _decoder.raw_decode(text, found)
        place = text.count('[', 0, found) - 1
        more = each[place] if each else None
        yield (
            place,
            Sample._make((*values, tuple(map(int, more.split(',')))))
            if more
            else Sample(*values),
        )
        found = text.find(start, end)


def by_second(
    samples: Sequence[Sample],
) -> Iterator[tuple[float, Sequence[Sample]]]:
    """Samples that belong into one value, with the end of their second."""
    for second, those in _seconds(samples).items():
        for start in range(0, len(those), MAX_SAMPLES):
            yield float(second), those[start : start + MAX_SAMPLES]


def _seconds(samples: Sequence[Sample]) -> dict[int, Sequence[Sample]]:
    ends = [sample[1] for sample in samples]
    if ends and math.ceil(min(ends)) == math.ceil(max(ends)):
        # As most batches are.
        return {math.ceil(ends[0]): samples}
    seconds: dict[int, list[Sample]] = {}
    for sample in samples:
        seconds.setdefault(math.ceil(sample[1]), []).append(sample)
    return {**seconds}

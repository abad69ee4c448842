# SPDX-License-Identifier: Apache-2.0

"""Samples as text: many of them in one value.

A JSON array of arrays, the values of each in the order of :class:`Sample`.
A release may add fields at the end, with a default for older values.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import json
import math
import re
import typing as ty


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


#: How many samples one value holds at most; 150 kB.
MAX_SAMPLES = 1000

_encode = json.JSONEncoder(
    separators=(',', ':'), check_circular=False, allow_nan=False
).encode
_decoder = json.JSONDecoder()
# The second value of each sample. There is no bracket in a UUID.
_TIME = re.compile(r'\["[^"]*",([^,]+),')


def pack(samples: Sequence[Sample]) -> str:
    """Samples as text; their order is kept."""
    return _encode(samples)


def unpack(text: str) -> list[Sample]:
    """What was packed."""
    return [Sample(*values) for values in _decoder.decode(text)]


def times(text: str) -> list[float]:
    """The moments of packed samples, in their order, without the rest.

    A twentieth of the work of :func:`unpack`.
    """
    return list(map(float, _TIME.findall(text)))


def unpack_one(text: str, instance_uuid: str) -> Iterator[tuple[int, Sample]]:
    """The samples of one instance and their places, without the others."""
    # There is no bracket inside of a sample, nor in a UUID.
    start = '["%s"' % instance_uuid
    found = text.find(start)
    while found >= 0:
        values, end = _decoder.raw_decode(text, found)
        yield text.count('[', 0, found) - 1, Sample(*values)
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

# SPDX-License-Identifier: Apache-2.0

"""Parse and render CPU lists in the kernel's and libvirt's format."""

from collections.abc import Iterable
import os
import pathlib

#: The highest CPU number (CONFIG_NR_CPUS is at most 8192); a longer range
#: would only use up memory.
MAX_CPU = 8191


def parse(text: str) -> frozenset[int]:
    """Read a list such as ``0-3,^2,8``.

    ``^`` excludes a CPU, as in libvirt's ``cpuset`` attributes.

    :param text: CPU numbers and ranges, separated by commas.
    :returns: the CPUs; empty for an empty text.
    :raises ValueError: when a part is neither.
    """
    members: set[int] = set()
    # isdecimal() accepts digits of other scripts.
    if not text.isascii():
        raise ValueError('%s is not a list of CPUs' % ascii(text))
    for part in filter(None, (one.strip() for one in text.split(','))):
        excluded = part.startswith('^')
        first, dash, last = part.removeprefix('^').partition('-')
        if not (first.isdecimal() and (last.isdecimal() or not dash)):
            raise ValueError('%r is not a list of CPUs' % text)
        low, high = int(first), int(last or first)
        if not low <= high <= MAX_CPU:
            raise ValueError(
                '%r is not a list of CPUs up to %d' % (text, MAX_CPU)
            )
        if excluded:
            members.difference_update(range(low, high + 1))
        else:
            members.update(range(low, high + 1))
    return frozenset(members)


def render(cpus: Iterable[int]) -> str:
    """Write CPUs as a list of ranges; the inverse of :func:`parse`."""
    parts: list[str] = []
    rest = sorted(cpus)
    while rest:
        length = 1
        while length < len(rest) and rest[length] == rest[0] + length:
            length += 1
        parts.append(
            str(rest[0])
            if length == 1
            else '%d-%d' % (rest[0], rest[length - 1])
        )
        rest = rest[length:]
    return ','.join(parts)


def online(root: str = '/') -> frozenset[int]:
    """Return the CPUs that are online now; all of them without sysfs.

    :param root: root of the file system; tests use their own.
    """
    try:
        return parse(
            pathlib.Path(root, 'sys/devices/system/cpu/online').read_text(
                encoding='ascii'
            )
        )
    except FileNotFoundError:
        return frozenset(range(os.cpu_count() or 1))

# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Sets of host CPUs as the kernel and libvirt write them."""

import pathlib

_ONLINE = pathlib.Path('/sys/devices/system/cpu/online')

#: More CPUs than any kernel is built for (CONFIG_NR_CPUS is at most 8192);
#: a range beyond it is a mistake that would only eat memory.
MAX_CPU = 8191


def parse(text: str) -> frozenset[int]:
    """Read a list such as ``0-3,^2,8``.

    ``^`` takes a CPU out again, as in libvirt's ``cpuset`` attributes.

    :param text: CPU numbers and ranges, separated by commas.
    :returns: the CPUs; empty for an empty text.
    :raises ValueError: naming the part that is neither.
    """
    members: set[int] = set()
    # Digits of other scripts are decimal, too, but no kernel writes them.
    if not text.isascii():
        raise ValueError('%s is not a list of CPUs' % ascii(text))
    for part in filter(None, (one.strip() for one in text.split(','))):
        excluded = part.startswith('^')
        first, dash, last = part.removeprefix('^').partition('-')
        if not (first.isdecimal() and (last.isdecimal() or not dash)):
            raise ValueError('%r is not a list of CPUs' % text)
        low, high = int(first), int(last or first)
        if not low <= high <= MAX_CPU:
            raise ValueError('%r is not a list of CPUs up to %d' % (
                text, MAX_CPU))
        if excluded:
            members.difference_update(range(low, high + 1))
        else:
            members.update(range(low, high + 1))
    return frozenset(members)


def render(cpus: frozenset[int]) -> str:
    """Write CPUs as a list of ranges; parse's inverse."""
    parts: list[str] = []
    rest = sorted(cpus)
    while rest:
        length = 1
        while length < len(rest) and rest[length] == rest[0] + length:
            length += 1
        parts.append(str(rest[0]) if length == 1 else '%d-%d' % (
            rest[0], rest[length - 1]))
        rest = rest[length:]
    return ','.join(parts)


def online(path: pathlib.Path = _ONLINE) -> frozenset[int]:
    """The CPUs that are online now.

    :raises OSError: without sysfs.
    """
    return parse(path.read_text())

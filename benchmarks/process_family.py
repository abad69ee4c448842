# SPDX-License-Identifier: Apache-2.0

"""What a process and all its descendants use.

An agent's helpers are its children: some are forked, some started by another
program, and each may have children. CPU time of those that have ended and
were waited for is in their parent's account.
"""

import collections
import contextlib
import dataclasses
import os
import pathlib

_TICK_S = 1 / os.sysconf('SC_CLK_TCK')
_PROC = pathlib.Path('/proc')


@dataclasses.dataclass(frozen=True)
class Use:
    """What processes have used.

    :param pids: of the processes.
    :param cpu_s: CPU time, of ended children as well.
    :param pss_mib: memory, of which what is shared counts in part.
    :param rss_mib: resident memory, of which what is shared counts in each.
    """

    pids: tuple[int, ...]
    cpu_s: float
    pss_mib: float
    rss_mib: float


def descendants(pid: int) -> tuple[int, ...]:
    """Return the processes below one, without itself."""
    children: dict[int, list[int]] = collections.defaultdict(list)
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                children[int(_stat(int(entry.name))[1])].append(
                    int(entry.name)
                )
    found: list[int] = []
    todo = [pid]
    while todo:
        below = children[todo.pop()]
        found += below
        todo += below
    return tuple(sorted(found))


def use(pids: tuple[int, ...]) -> Use:
    """Return what processes have used; those that have ended count 0."""
    cpu_s = pss_kib = rss_kib = 0.0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = _stat(pid)
            cpu_s += _TICK_S * sum(map(int, fields[11:15]))
            for line in (
                (_PROC / str(pid) / 'smaps_rollup').read_text().splitlines()
            ):
                name, _, value = line.partition(':')
                if name == 'Pss':
                    pss_kib += float(value.split()[0])
                elif name == 'Rss':
                    rss_kib += float(value.split()[0])
    return Use(pids, cpu_s, pss_kib / 1024, rss_kib / 1024)


def _stat(pid: int) -> list[str]:
    """Return the fields of proc_pid_stat(5) from the third on."""
    # The second one is a name, which may hold anything.
    return (_PROC / str(pid) / 'stat').read_text().rpartition(')')[2].split()

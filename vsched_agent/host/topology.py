# SPDX-License-Identifier: Apache-2.0

"""The CPU topology of this host."""

import pathlib

from vsched_agent.host import cpu_list


def ordered_cpus(root: str = '/') -> list[int]:
    """Return the online CPUs, ordered by package, then core.

    :param root: root of the file system; tests use their own.
    """
    return sorted(
        cpu_list.online(root), key=lambda cpu: (*_place(root, cpu), cpu)
    )


def _place(root: str, cpu: int) -> tuple[int, int]:
    folder = pathlib.Path(
        root, 'sys/devices/system/cpu/cpu%d' % cpu, 'topology'
    )
    return (
        _number(folder / 'physical_package_id'),
        _number(folder / 'core_id'),
    )


def _number(path: pathlib.Path) -> int:
    try:
        return int(path.read_text(encoding='ascii'))
    except (OSError, ValueError):
        # Without topology all CPUs count as one core.
        return 0

# SPDX-License-Identifier: Apache-2.0

"""Chooses the reader for a hypervisor."""

from collections.abc import Callable

from vsched_agent.accounting import base
from vsched_agent.accounting import qemu
from vsched_agent.accounting import unread

#: By kind of hypervisor, what makes a reader.
READERS: dict[str, Callable[[], base.Reader]] = {
    'qemu': qemu.ProcessReader,
    'xen': unread.NoReader,
}


def of_kind(kind: str) -> base.Reader:
    """Make a reader for one kind of hypervisor.

    :param kind: see :class:`vsched_agent.hypervisor.base.Hypervisor`.
    :raises ValueError: when there is no reader of its instances.
    """
    if kind not in READERS:
        raise ValueError(
            'CPU time of instances can be read of %s, not of %s'
            % (', '.join(READERS), kind)
        )
    return READERS[kind]()

# SPDX-License-Identifier: Apache-2.0

"""The counts that samples of usage and their sums have alike."""

import dataclasses

from vsched_lib.model import executions


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A host's work for instances; see ``messages.UsageSample``."""

    direct_us: int = 0
    direct_wait_us: int = 0
    shared_us: int = 0
    wakeups: int = 0
    net_rx_packets: int = 0
    net_tx_packets: int = 0
    disk_read_requests: int = 0
    disk_write_requests: int = 0


#: The names of its fields are columns of series: append new ones.
WORK = tuple(field.name for field in dataclasses.fields(Work))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Executions(Work):
    """Executions of an instance's threads; None where they are unknown.

    See ``messages.UsageSample``.
    """

    executions: int | None = None
    emulator_wakeups: int | None = None
    emulator_wait_us: int | None = None
    iothread_wakeups: int | None = None
    iothread_wait_us: int | None = None
    vhost_wakeups: int | None = None
    vhost_wait_us: int | None = None

    @property
    def _covered_us(self) -> int:
        raise NotImplementedError

    def figures(self) -> dict[str, float | None]:
        """Return rates and means; see :mod:`vsched_lib.model.executions`."""
        return executions.figures(
            {
                name: getattr(self, name)
                for name in (*WORK, 'wait_us', *executions.COUNTS)
            },
            self._covered_us,
        )

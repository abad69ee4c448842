# SPDX-License-Identifier: Apache-2.0

"""CPU clocks of the probes."""

from collections.abc import Sequence
import os
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.host import schedstat
from vsched_agent.privileged import clocks

LOG = logging.getLogger(__name__)


class Look(ty.NamedTuple):
    """What a thread had used at a moment.

    :param at_ns: steady clock.
    :param ran_ns: CPU time, from any beginning.
    """

    at_ns: int
    ran_ns: int


class Clocks(ty.Protocol):
    """Reads CPU clocks of threads, each with the time it is read at.

    :cvar name: as it is written into profiles.
    :cvar live: whether they count on while a thread runs, so that one whose
        clock stands still does not.
    """

    name: str
    live: bool

    def watch(self, tids: Sequence[int]) -> None:
        """Begin to watch threads."""

    def look(self, tids: Sequence[int]) -> list[Look]:
        """Read the clocks of threads that are watched."""

    def leave(self, tids: Sequence[int]) -> None:
        """Watch threads no longer."""


class Exact:
    """Clocks that count up to this moment, by perf events."""

    name = 'perf'
    live = True

    def watch(self, tids: Sequence[int]) -> None:
        """Begin to watch threads.

        :raises OSError: when one can not be watched.
        """
        for tid, number in clocks.open_clocks(list(tids)).items():
            if number:
                self.leave(tids)
                raise OSError(
                    number,
                    'the clock of thread %d: %s'
                    % (int(tid), os.strerror(number)),
                )

    def look(self, tids: Sequence[int]) -> list[Look]:
        """Read the clocks of threads that are watched."""
        return [Look(*one) for one in clocks.read_clocks(list(tids))]

    def leave(self, tids: Sequence[int]) -> None:
        """Watch threads no longer."""
        clocks.close_clocks(list(tids))


class Ticking:
    """Clocks that stand still between two ticks, in procfs."""

    name = 'procfs'
    live = False

    def watch(self, tids: Sequence[int]) -> None:
        """Nothing is kept."""

    def look(self, tids: Sequence[int]) -> list[Look]:
        """Read the clocks of threads.

        :raises ProcessLookupError: when one is gone.
        """
        return [
            Look(time.monotonic_ns(), schedstat.read(tid).run_ns)
            for tid in tids
        ]

    def leave(self, tids: Sequence[int]) -> None:
        """Nothing was kept."""


def best() -> Clocks:
    """The most exact clocks this host has."""
    exact = Exact()
    own = [os.getpid()]
    try:
        exact.watch(own)
        exact.leave(own)
    except Exception as problem:
        # Kernels without perf events, hosts that forbid them.
        LOG.warning('clocks are as old as the last tick: %s', problem)
        return Ticking()
    return exact

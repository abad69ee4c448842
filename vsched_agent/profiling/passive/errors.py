# SPDX-License-Identifier: Apache-2.0

"""Samples of the error that production gives for free.

A thread that wanted all that it was promised in a second is an ALERT sample;
:mod:`vsched_agent.profiling.passive.watch` says which seconds those are. Only
``capped`` promises count, as others may get more by right.
"""

import collections
from collections.abc import Iterable
from collections.abc import Sequence
import errno
import os
import time
import typing as ty
import uuid as uuids

from oslo_log import log as logging

from vsched_agent.host import schedstat
from vsched_agent.profiling.passive import watch
from vsched_lib.contract import profiles
from vsched_lib.model import error
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

#: As many samples of one point are kept, the newest ones.
MOST = 3600
#: Shares are put together that round to the same of these steps, in ppm.
STEP_PPM = 10_000
#: A thread is watched for so many passes, then the next one's turn comes.
PASSES = 20
#: A window this much off the second is none.
_LENGTHS_S = (0.5, 2.0)
#: A thread may begin to run between two readings; then they are repeated.
_TRIES = 4
_GONE = frozenset((errno.ESRCH,))


class Switches(ty.Protocol):
    """Watches threads' switches, as vsched_agent.privileged.switches does."""

    def open_switches(self, tids: Iterable[int]) -> dict[int, int]:
        """Begin to watch; 0 or the kernel's errno for each."""

    def read_switches(
        self, tids: Iterable[int]
    ) -> Sequence[Sequence[tuple[int, bool]] | None]:
        """What they did since the last call."""

    def close_switches(self, tids: Iterable[int]) -> None:
        """Watch no longer."""


class Held(ty.NamedTuple):
    """One thread and what it is promised.

    :param backend: that holds it.
    :param asked: what the flavor promises, without margins.
    """

    tid: int
    backend: str
    asked: reservation.Reservation


class LiveErrors:
    """Gathers samples from threads under a reservation.

    Watches a bounded number of threads for :data:`PASSES` passes and then
    the next ones, so that its cost does not grow with the host.

    :param threads: how many.
    :param switches: watches their switches.
    :param proc: where procfs is.
    """

    def __init__(
        self, threads: int, switches: Switches, proc: str = '/proc'
    ) -> None:
        self._threads = threads
        self._switches = switches
        self._proc = proc
        self._next = 0
        self._passes = 0
        self._watched: dict[int, tuple[Held, list[watch.Look]]] = {}
        self._samples: dict[tuple[str, int, int], collections.deque[int]] = {}
        self._since = time.time()
        # Errors of the kernel that were reported once.
        self._reported: set[int] = set()

    @property
    def count(self) -> int:
        """How many samples there are."""
        return sum(map(len, self._samples.values()))

    def look(self, held: Iterable[Held]) -> None:
        """One pass: look at those that are watched, or begin with others.

        :param held: every thread whose reservation was attested in this
            pass, in a steady order.
        """
        if not self._threads:
            return
        everyone = {
            one.tid: one
            for one in held
            if one.asked.mode is reservation.Mode.CAPPED
        }
        self._leave(
            [
                tid
                for tid, (known, _) in self._watched.items()
                if everyone.get(tid) != known
            ]
        )
        self._passes += 1
        if not self._watched or self._passes > PASSES:
            self.close()
            self._begin(list(everyone.values()))
        self._look()

    def close(self) -> None:
        """Take the samples of those that are watched, and leave them."""
        self._leave(list(self._watched))
        self._passes = 0

    def profile(
        self, version: int, facts: ty.Mapping[str, ty.Any]
    ) -> profiles.ErrorProfile | None:
        """What was gathered, as a profile; None when nothing was.

        :param facts: of the kernel, as in a profile.
        """
        points = tuple(
            profiles.ErrorPoint.of(
                error.statistics(samples),
                backend=backend,
                period_us=period_us,
                share_ppm=share_ppm,
                contenders=0,
                probe=profiles.Probe.VCPU,
                window_us=error.WINDOW_US,
            )
            for (backend, period_us, share_ppm), samples in sorted(
                self._samples.items()
            )
        )
        if not points:
            return None
        return profiles.ErrorProfile(
            uuid=str(uuids.uuid4()),
            version=version,
            source=profiles.ProfileSource.LIVE,
            started_at=self._since,
            finished_at=time.time(),
            load=os.getloadavg()[0],
            quick=False,
            complete=True,
            points=points,
            **facts,
        )

    def _begin(self, everyone: list[Held]) -> None:
        if not everyone:
            return
        start = self._next % len(everyone)
        chosen = (everyone[start:] + everyone[:start])[: self._threads]
        self._next = start + len(chosen)
        try:
            found = {
                int(tid): number
                for tid, number in self._switches.open_switches(
                    [one.tid for one in chosen]
                ).items()
            }
        except Exception as problem:
            # Whatever keeps the helper from starting: samples are a gift.
            LOG.warning('there will be no samples of production: %s', problem)
            self._threads = 0
            return
        for one in chosen:
            number = found[one.tid]
            if not number:
                self._watched[one.tid] = one, []
            elif number not in _GONE and number not in self._reported:
                self._reported.add(number)
                LOG.warning(
                    'thread %d gives no samples of production: %s',
                    one.tid,
                    os.strerror(number),
                )

    def _leave(self, tids: list[int]) -> None:
        if not tids:
            return
        for tid in tids:
            self._take(*self._watched.pop(tid))
        self._switches.close_switches(tids)

    def _take(self, held: Held, looks: list[watch.Look]) -> None:
        asked = held.asked
        share = float(asked.utilisation)
        step = max(STEP_PPM, round(share * error.PPM / STEP_PPM) * STEP_PPM)
        for window in watch.eager(
            looks, (asked.period_us - asked.runtime_us) * 1000
        ):
            if _LENGTHS_S[0] <= window.length_ns * 1e-9 <= _LENGTHS_S[1]:
                self._samples.setdefault(
                    (held.backend, asked.period_us, step),
                    collections.deque(maxlen=MOST),
                ).append(
                    error.error_ppm(window.got_ns, share * window.length_ns)
                )

    def _look(self) -> None:
        """Look at all, with counters and switches of one moment."""
        new: dict[int, list[tuple[int, bool]]] = {
            tid: [] for tid in self._watched
        }
        left = list(new)
        for _ in range(_TRIES):
            if not left:
                return
            before = [self._counters(tid) for tid in left]
            at_ns = time.monotonic_ns()
            found = self._switches.read_switches(left)
            moved = []
            for tid, first, switches in zip(left, before, found, strict=True):
                if switches is None:
                    # Some were lost: what is known is of no use.
                    self._watched[tid][1].clear()
                    continue
                new[tid] += switches
                after = self._counters(tid)
                if first is None or after is None:
                    continue
                if after.timeslices != first.timeslices:
                    moved.append(tid)
                    continue
                self._watched[tid][1].append(
                    watch.Look(at_ns, after.run_ns, after.wait_ns, new[tid])
                )
            left = moved
        for tid in left:
            self._watched[tid][1].clear()

    def _counters(self, tid: int) -> schedstat.Counters | None:
        try:
            return schedstat.read(tid, self._proc)
        except (OSError, ValueError):
            return None

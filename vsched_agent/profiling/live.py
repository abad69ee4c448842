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

"""Samples of the error that production gives for free.

A reservation whose threads never slept in a window wanted all the CPU time
it could get: what it got is an ALERT sample. Whether a thread slept, its
count of voluntary switches tells. Only ``capped`` promises count, as others
may get more by right.
"""

import collections
from collections.abc import Iterable
import os
import time
import typing as ty
import uuid as uuids

from vsched_lib.contract import messages
from vsched_lib.model import error
from vsched_lib.model import reservation

#: As many samples of one point are kept, the newest ones.
MOST = 3600
#: Shares are put together that round to the same of these steps, in ppm.
STEP_PPM = 10_000
#: A window this much off the second is none.
_LENGTHS_S = (0.5, 2.0)

_WORD = b'\nvoluntary_ctxt_switches:'


class Held(ty.NamedTuple):
    """One thread and what it is promised.

    :param backend: that holds it.
    :param asked: what the flavor promises, without margins.
    """

    tid: int
    backend: str
    asked: reservation.Reservation


class _Mark(ty.NamedTuple):
    held: Held
    at_ns: int
    ran_ns: int
    switches: int


class LiveErrors:
    """Gathers samples from threads under a reservation.

    Looks at a bounded number of threads a pass, the next ones at the next
    pass, so that its cost does not grow with the host.

    :param threads: how many.
    :param proc: where procfs is.
    """

    def __init__(self, threads: int, proc: str = '/proc') -> None:
        self._threads = threads
        self._proc = proc
        self._next = 0
        self._marks: dict[int, _Mark] = {}
        self._samples: dict[tuple[str, int, int], collections.deque[int]] = {}
        self._since = time.time()

    @property
    def count(self) -> int:
        """How many samples there are."""
        return sum(map(len, self._samples.values()))

    def look(self, held: Iterable[Held]) -> None:
        """One pass: end the windows that were begun, begin others.

        :param held: every thread whose reservation was attested in this
            pass, in a steady order.
        """
        everyone = [one for one in held
                    if one.asked.mode is reservation.Mode.CAPPED]
        for one in everyone:
            mark = self._marks.get(one.tid)
            if mark is not None:
                self._take(mark, one)
        self._marks.clear()
        if not everyone or not self._threads:
            return
        start = self._next % len(everyone)
        chosen = (everyone[start:] + everyone[:start])[:self._threads]
        self._next = start + len(chosen)
        for one in chosen:
            mark = self._mark(one)
            if mark is not None:
                self._marks[one.tid] = mark

    def profile(self, version: int, facts: ty.Mapping[str, ty.Any],
                ) -> messages.ErrorProfile | None:
        """What was gathered, as a profile; None when nothing was.

        :param facts: of the kernel, as in a profile.
        """
        points = tuple(
            messages.ErrorPoint.of(
                error.statistics(samples), backend=backend,
                period_us=period_us, share_ppm=share_ppm, contenders=0,
                probe=messages.Probe.VCPU, window_us=error.WINDOW_US)
            for (backend, period_us, share_ppm), samples
            in sorted(self._samples.items()))
        if not points:
            return None
        return messages.ErrorProfile(
            uuid=str(uuids.uuid4()), version=version,
            source=messages.ProfileSource.LIVE, started_at=self._since,
            finished_at=time.time(), load=os.getloadavg()[0], quick=False,
            complete=True, points=points, **facts)

    def _take(self, mark: _Mark, now: Held) -> None:
        if now != mark.held:
            return
        end = self._mark(now)
        if end is None or end.switches != mark.switches:
            return
        length_ns = end.at_ns - mark.at_ns
        if not _LENGTHS_S[0] <= length_ns * 1e-9 <= _LENGTHS_S[1]:
            return
        share = float(now.asked.utilisation)
        step = max(STEP_PPM, round(share * error.PPM / STEP_PPM) * STEP_PPM)
        self._samples.setdefault(
            (now.backend, now.asked.period_us, step),
            collections.deque(maxlen=MOST)).append(error.error_ppm(
                end.ran_ns - mark.ran_ns, share * length_ns))

    def _mark(self, held: Held) -> _Mark | None:
        try:
            # As old as the last tick while it runs: good enough for what
            # costs nothing, and without privilege.
            return _Mark(held, time.monotonic_ns(), self._ran_ns(held.tid),
                         self._switches(held.tid))
        except (OSError, ValueError):
            return None

    def _ran_ns(self, tid: int) -> int:
        return int(self._read(tid, 'schedstat').split()[0])

    def _switches(self, tid: int) -> int:
        text = self._read(tid, 'status')
        start = text.index(_WORD) + len(_WORD)
        return int(text[start:text.index(b'\n', start)])

    def _read(self, tid: int, name: str) -> bytes:
        descriptor = os.open('%s/%d/%s' % (self._proc, tid, name),
                             os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, 8192)
        finally:
            os.close(descriptor)

# SPDX-License-Identifier: Apache-2.0

"""Idle CPU time for threads of mode ``work_conserving``.

Reservations do not depend on it, so failures refuse nothing: without the
helper threads get their reservation and no more.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import os

from oslo_log import log as logging

from vsched_agent.privileged.budget_expiry import budgets
from vsched_agent.privileged import reclaiming
from vsched_agent.privileged import sched
from vsched_agent.privileged import syscalls

LOG = logging.getLogger(__name__)

#: Passes between two attempts when the kernel did not admit the helper's
#: thread.
_RETRY_PASSES = 30

#: (tid, runtime_ns, period_ns, flags), as the helpers expect it.
Request = Sequence[int]


class IdleTime:
    """Threads that may use idle CPU time.

    :param enabled: whether they get any. They are recorded in any case: the
        kernel does not show the mode of a thread that does not reclaim.
    """

    def __init__(self, enabled: bool = False) -> None:
        self._enabled = enabled
        self._requests: dict[int, Request] = {}
        # A helper that was never used need not be stopped.
        self._used = False
        self._lost = False
        self._passes = 0
        self._refused: set[int] = set()

    @property
    def reserve_mcpu(self) -> int:
        """Return what the helper's own thread reserves, in milli-CPU."""
        return reclaiming.RESERVE_MCPU if self._enabled else 0

    def __contains__(self, tid: int) -> bool:
        return tid in self._requests

    def without(self, tid: int, attr: syscalls.Attr) -> syscalls.Attr:
        """Return a thread's parameters without the helper's flag."""
        if tid not in self._requests or not self._enabled or self._lost:
            return attr
        return attr._replace(flags=attr.flags & ~syscalls.FLAG_RECLAIM)

    def watch(self, requests: Iterable[Request]) -> None:
        """Give threads idle CPU time from now on.

        :param requests: their parameters. Known ones are skipped.
        """
        new = [
            request
            for request in map(tuple, requests)
            if self._requests.get(request[0]) != request
        ]
        self._requests.update((request[0], request) for request in new)
        if not new or not self._enabled or self._lost:
            return
        self._ask(new)

    def _ask(self, requests: Sequence[Request]) -> None:
        self._used = True
        try:
            number = budgets.reclaim(requests)
        except Exception as failure:
            self._lose(failure)
            return
        if number:
            LOG.warning(
                'work_conserving instances get no idle CPU time: the '
                'kernel does not admit the sampling thread: %s',
                os.strerror(number),
            )

    def forget(self, tids: Iterable[int]) -> Sequence[Request]:
        """Limit threads to their reservation.

        The flag is cleared when this returns.

        :returns: for :meth:`watch`.
        """
        found = [
            self._requests.pop(tid) for tid in tids if tid in self._requests
        ]
        self._refused.difference_update(request[0] for request in found)
        if found and self._used and not self._lost:
            try:
                budgets.stop_reclaiming([request[0] for request in found])
            except Exception as failure:
                self._lose(failure)
        return found

    @contextlib.contextmanager
    def paused(self, tids: Iterable[int]) -> Iterator[None]:
        """Withdraw idle time from threads while they are changed.

        When the change fails they have their former parameters, and get idle
        time again.
        """
        before = self.forget(tids)
        try:
            yield
        except BaseException:
            self.watch(before)
            raise

    def refresh(self) -> None:
        """Renew the helper's lease; clear flags that a lost helper left."""
        for tid in [tid for tid in self._requests if _flags(tid) is None]:
            del self._requests[tid]
            self._refused.discard(tid)
        if not self._used or not self._requests:
            return
        if self._lost:
            self._clear()
            return
        try:
            report = budgets.renew()
        except Exception as failure:
            self._lose(failure)
            return
        for tid, number in report['refused'].items():
            if tid in self._requests and tid not in self._refused:
                self._refused.add(tid)
                LOG.info(
                    'thread %d gets no idle CPU time: %s',
                    tid,
                    os.strerror(number),
                )
        self._passes += 1
        if not report['sampling'] and not self._passes % _RETRY_PASSES:
            self._ask(list(self._requests.values()))

    def close(self) -> None:
        """Clear all flags; threads keep their reservations."""
        if self._used:
            self.forget(list(self._requests))
            self._clear()
        self._used = False

    def _lose(self, failure: Exception) -> None:
        LOG.warning(
            'work_conserving instances get no idle CPU time: the helper does '
            'not answer: %s; see helper_command in [%s]',
            failure,
            budgets.budgets_pctxt.cfg_section,
        )
        self._lost = True
        self._clear()

    def _clear(self) -> None:
        # A killed helper could not clear the flags.
        left = [
            request
            for tid, request in self._requests.items()
            if (_flags(tid) or 0) & syscalls.FLAG_RECLAIM
        ]
        if left:
            try:
                sched.set_deadline(left)
            except Exception as failure:
                LOG.error(
                    'threads %s may use more than idle CPU time: %s',
                    [request[0] for request in left],
                    failure,
                )


def _flags(tid: int) -> int | None:
    # None of a thread that has ended or left the class.
    try:
        attr = syscalls.get_attr(tid)
    except OSError:
        return None
    return attr.flags if attr.policy == syscalls.SCHED_DEADLINE else None

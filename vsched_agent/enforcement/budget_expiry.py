# SPDX-License-Identifier: Apache-2.0

"""Have the helper check budget expiry between the kernel's ticks.

All threads with a budget are checked: the overrun depends on when expiry is
detected, not on the budget's size or period, and is relatively largest for
short budgets.

Without checks reservations are still guaranteed, at a coarser granularity. So
failures are logged as warnings and refuse nothing.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import contextlib
import os
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.privileged.budget_expiry import budgets
from vsched_agent.privileged.budget_expiry import checking
from vsched_agent.privileged.budget_expiry import lending
from vsched_agent.privileged import clocks

LOG = logging.getLogger(__name__)

#: (tid, runtime_ns, period_ns, flags), as the helpers expect it.
Request = Sequence[int]


#: The helper is saturated when it has rested, with budgets to check, for more
#: than this part of this many seconds, ...
SATURATED_PART, SATURATED_S = 0.1, 5.0
#: ... until it has rested less than this part of this many seconds.
EASED_PART, EASED_S = 0.02, 60.0


class CheckStatus(ty.NamedTuple):
    """State of the budget expiry checks.

    :param threads: number of threads whose budgets are checked.
    :param saturated: checks are late, because the helper has used up its
        reservation or is gone.
    """

    threads: int = 0
    saturated: bool = False


class CheckLoad:
    """Determines with hysteresis whether the helper is saturated."""

    def __init__(self) -> None:
        self.status = CheckStatus()
        self._since_s: float | None = None
        self._before_s = 0.0

    def lost(self) -> None:
        """Record that the helper is gone."""
        self.status = self.status._replace(saturated=True)
        self._since_s = None

    def take(self, threads: int, rested_s: float, now_s: float) -> None:
        """Account for one report.

        :param rested_s: as reported by the helper, since its start.
        :param now_s: the steady clock.
        """
        saturated = self.status.saturated
        if self._since_s is None or rested_s < self._before_s:
            self._since_s, self._before_s = now_s, rested_s
        passed_s = now_s - self._since_s
        part = (rested_s - self._before_s) / max(passed_s, 1e-9)
        if not saturated:
            if passed_s >= SATURATED_S:
                saturated = part > SATURATED_PART
                self._since_s, self._before_s = now_s, rested_s
        elif passed_s >= SATURATED_S and part > EASED_PART:
            self._since_s, self._before_s = now_s, rested_s
        elif passed_s >= EASED_S:
            saturated = False
            self._since_s, self._before_s = now_s, rested_s
        self.status = CheckStatus(threads, saturated)


class BudgetChecks:
    """Has the helper check threads, except while they are changed.

    :param check_us: longest delay of a check after a budget's end; 0 disables
        the checks.
    """

    def __init__(self, check_us: int = 0) -> None:
        self._check_us = check_us
        self._load = CheckLoad()
        # A helper that was never used need not be stopped.
        self._used = False

    @property
    def reserve_mcpu(self) -> int:
        """Return what the helper's own thread reserves, in milli-CPU."""
        return checking.reserve_mcpu() if self._check_us else 0

    @property
    def check_status(self) -> CheckStatus:
        """Return the state of the checks as of the last :meth:`refresh`."""
        return self._load.status

    def refresh(self) -> None:
        """Ask the helper for the state of its checks."""
        if not self._used:
            return
        try:
            report = budgets.report()
        except Exception as failure:
            LOG.debug('the budget expiry helper is gone: %s', failure)
            self._load.lost()
            return
        self._load.take(
            int(report['checked']), report['rested_s'], time.monotonic()
        )

    def watch(self, requests: Iterable[Request]) -> None:
        """Check threads from now on.

        :param requests: their parameters.
        """
        requests = [tuple(request) for request in requests]
        if not self._check_us or not requests:
            return
        self._used = True
        try:
            number = budgets.watch(
                requests,
                self._check_us,
                self._events([request[0] for request in requests]),
            )
        except Exception as failure:
            LOG.warning(
                'the budget expiry helper does not answer: %s; see '
                'helper_command in [%s]',
                failure,
                budgets.budgets_pctxt.cfg_section,
            )
            return
        if number:
            LOG.warning(
                'budgets expire at the tick: the kernel does not admit '
                'the helper to SCHED_DEADLINE: %s',
                os.strerror(number),
            )

    @staticmethod
    def _events(tids: list[int]) -> bytes:
        """Have the perf helper send its events to the budget helper."""
        address = budgets.borrow()
        try:
            missing = lending.lend(tids, address)
        except Exception as failure:
            LOG.warning(
                'budgets are checked once an interval: %s; see '
                'helper_command in [%s]',
                failure,
                clocks.perf_pctxt.cfg_section,
            )
        else:
            for tid, number in missing.items():
                LOG.info(
                    'budgets of thread %d are checked once an interval: %s',
                    tid,
                    os.strerror(number),
                )
        return address

    def forget(self, tids: Iterable[int]) -> Sequence[Request]:
        """Stop checking threads; they may be changed afterwards.

        :returns: the parameters of those that were checked, for
            :meth:`watch`.
        """
        if not self._used:
            return ()
        try:
            return budgets.forget(list(tids))
        except Exception as failure:
            # It is gone, and with it its checks.
            LOG.warning('the budget expiry helper is gone: %s', failure)
            return ()

    @contextlib.contextmanager
    def paused(self, tids: Iterable[int]) -> ty.Iterator[None]:
        """Stop checking threads while they are changed.

        When the change fails they have their former parameters, and are
        checked again.
        """
        before = self.forget(tids)
        try:
            yield
        except BaseException:
            self.watch(before)
            raise

    def close(self) -> None:
        """Stop all checks and release the helper's resources."""
        if not self._used:
            return
        self._used = False
        try:
            budgets.stop()
        except Exception as failure:
            LOG.warning('the budget expiry helper is gone: %s', failure)

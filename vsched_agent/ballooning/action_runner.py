# SPDX-License-Identifier: Apache-2.0

"""Run actions on instances in threads that may wait for guests.

An action's result is recorded by the loop's thread, so that only one thread
changes state.
"""

from collections.abc import Callable
import concurrent.futures
import functools

from oslo_log import log as logging

from vsched_agent.ballooning import instance as instances
from vsched_agent.ballooning import transaction
from vsched_lib.model import balloon_trial
from vsched_lib import problem_log

LOG = logging.getLogger(__name__)

Instance = instances.Instance
#: Records an action's result; called by the loop's thread.
Completion = Callable[[], None]

#: Concurrent actions on guests.
_WORKERS = 8
#: Seconds until another attempt to give vCPUs back.
RETRY_S = 3.0


class ActionRunner:
    """Runs actions; every method returns at once.

    :param transactions: records of balloons in force.
    :param clock: monotonic seconds.
    :param post: queues a call for the loop's thread.
    """

    def __init__(
        self,
        transactions: transaction.BalloonTransactions,
        clock: Callable[[], float],
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        self._transactions = transactions
        self._clock = clock
        self._post = post
        self._problems = problem_log.ProblemLog(LOG)
        self._pool = concurrent.futures.ThreadPoolExecutor(
            _WORKERS, 'vsched-balloon'
        )

    def close(self) -> None:
        """Start no more actions."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def submit(
        self,
        one: Instance,
        action: Callable[[], Completion],
        failed: Callable[[Exception], None],
        busy: bool = True,
    ) -> None:
        """Run something that may wait for the guest in a thread.

        :param action: returns the call that records its result.
        :param failed: called by the loop's thread with other errors.
        :param busy: the instance was marked as busy; the recording call
            clears the mark.
        """

        def run() -> None:
            try:
                completion = action()
            except Exception as error:
                self._problems.failed(
                    one.uuid, error, '%s: ballooning failed', one.domain.name
                )
                completion = functools.partial(failed, error)
            self._post(functools.partial(self._finish, one, completion, busy))

        try:
            self._pool.submit(run)
        except RuntimeError as error:
            # The pool is shut down.
            self._post(
                functools.partial(
                    self._finish, one, functools.partial(failed, error), busy
                )
            )

    def _finish(
        self, one: Instance, completion: Completion, busy: bool
    ) -> None:
        """Record an action's result."""
        try:
            completion()
        except Exception as error:
            self._problems.failed(
                one.uuid,
                error,
                '%s: the result of ballooning could not be recorded',
                one.domain.name,
            )
            if busy:
                one.busy = False
                self._request_return(one)

    def _request_return(self, one: Instance) -> None:
        """Have the planner undo what the journal records of an instance."""
        one.retry_s = self._clock() + RETRY_S
        found = [
            record
            for record in self._transactions.records()
            if record.instance_uuid == one.uuid
        ]
        if found:
            (one.record,) = found
        if one.record is not None and one.return_cause is None:
            one.return_cause = 'ballooning failed'
            one.outcome = balloon_trial.Outcome.FAILED

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

"""Which threads' budgets are looked at between the kernel's ticks.

All that are given one: what a budget overruns does not depend on its size
or period but on who looks at it when, and short budgets miss most by it.

Without looks promises are kept no less, only less finely. So nothing here
refuses anything: what goes wrong is a warning.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import contextlib
import os
import typing as ty

from oslo_log import log as logging

from vsched_agent.privileged import budgets
from vsched_agent.privileged import checking
from vsched_agent.privileged import clocks
from vsched_agent.privileged import lending
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

#: (tid, runtime_ns, period_ns, flags), as the helpers take it.
Request = Sequence[int]


class BudgetChecks:
    """Has the helper look at threads, and leave those that change.

    :param check_us: how soon after its end a budget is looked at; 0 for
        never.
    """

    def __init__(self, check_us: int = 0) -> None:
        self._check_us = check_us
        # Only who had it look needs the helper to stop.
        self._used = False

    @property
    def reserve_mcpu(self) -> int:
        """What the helper's own thread takes of the host."""
        return (reservation.MCPU_PER_CPU // checking.PART
                if self._check_us else 0)

    def watch(self, requests: Iterable[Request]) -> None:
        """Look at threads from now on.

        :param requests: what they hold.
        """
        requests = [tuple(request) for request in requests]
        if not self._check_us or not requests:
            return
        self._used = True
        try:
            number = budgets.watch(
                requests, self._check_us,
                self._events([request[0] for request in requests]))
        except Exception as failure:
            LOG.warning(
                'the helper that looks at budgets does not answer: %s; see '
                'helper_command in [%s]', failure,
                budgets.budgets_pctxt.cfg_section)
            return
        if number:
            LOG.warning('budgets end at the tick: the kernel does not let '
                        'the helper into the class: %s', os.strerror(number))

    @staticmethod
    def _events(tids: list[int]) -> bytes:
        """Have one helper send the other what tells of budgets' ends."""
        address = budgets.borrow()
        try:
            missing = lending.lend(tids, address)
        except Exception as failure:
            LOG.warning('budgets are looked at once an interval: %s; see '
                        'helper_command in [%s]', failure,
                        clocks.perf_pctxt.cfg_section)
        else:
            for tid, number in missing.items():
                LOG.info('budgets of thread %d are looked at once an '
                         'interval: %s', tid, os.strerror(number))
        return address

    def forget(self, tids: Iterable[int]) -> Sequence[Request]:
        """Look at threads no longer; they may be changed now.

        :returns: for :meth:`watch`, what those held that were looked at.
        """
        if not self._used:
            return ()
        try:
            return budgets.forget(list(tids))
        except Exception as failure:
            # It is gone, or it would answer; and its looks are with it.
            LOG.warning('the helper that looks at budgets is gone: %s',
                        failure)
            return ()

    @contextlib.contextmanager
    def paused(self, tids: Iterable[int]) -> ty.Iterator[None]:
        """Look away while threads are changed.

        When that fails they hold what they had, and are looked at again.
        """
        before = self.forget(tids)
        try:
            yield
        except BaseException:
            self.watch(before)
            raise

    def close(self) -> None:
        """Look at nothing any more, and hold nothing."""
        if not self._used:
            return
        self._used = False
        try:
            budgets.stop()
        except Exception as failure:
            LOG.warning('the helper that looks at budgets is gone: %s',
                        failure)

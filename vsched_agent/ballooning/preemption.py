# SPDX-License-Identifier: Apache-2.0

"""Forced preemption on the CPUs of a guest that changes its vCPUs.

To take a vCPU offline, a guest's kernel runs a few steps on all vCPUs together
(``stop_machine``), and each step waits for the last of them. With several busy
vCPUs on a CPU that takes seconds when they are preempted at ticks. Forced
preemption costs all threads a little time and does not change their shares.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib

from oslo_log import log as logging

from vsched_agent.privileged import preemption

LOG = logging.getLogger(__name__)


class ForcedPreemption:
    """Uses the helper for forced preemption; failures are only logged.

    :param turn_us: preemption interval; 0 disables it.
    """

    def __init__(self, turn_us: int) -> None:
        self._turn_us = turn_us
        self._failed = False

    def prepare(self) -> None:
        """Start the helper ahead of its first use."""
        if not self._turn_us or self._failed:
            return
        try:
            preemption.ready()
        except Exception as failure:
            self._give_up(failure)

    @contextlib.contextmanager
    def enabled(self, tids: Sequence[int], limit_s: float) -> Iterator[None]:
        """Force preemption meanwhile, for at most ``limit_s`` seconds."""
        name = self._begin(tids, limit_s)
        try:
            yield
        finally:
            if name is not None:
                try:
                    preemption.end(name)
                except Exception as failure:
                    self._give_up(failure)

    def _begin(self, tids: Sequence[int], limit_s: float) -> int | None:
        if not self._turn_us or self._failed:
            return None
        try:
            return preemption.begin(list(tids), self._turn_us, limit_s)
        except Exception as failure:
            self._give_up(failure)
            return None

    def _give_up(self, failure: Exception) -> None:
        self._failed = True
        LOG.warning(
            'guests take vCPUs offline slowly: the helper for forced '
            'preemption does not answer: %s; see helper_command in [%s]',
            failure,
            preemption.turns_pctxt.cfg_section,
        )

# SPDX-License-Identifier: Apache-2.0

"""Removes what threads of a process that has ended leave behind."""

from collections.abc import Mapping

from oslo_log import log as logging

from vsched_agent.enforcement import base
from vsched_agent.state import store as journals
from vsched_lib.model import reservation
from vsched_lib import problem_log

LOG = logging.getLogger(__name__)


class ThreadCleanup:
    """Cleans up by the journal, and deletes its records.

    :param backends: by name.
    :param journal: keeps the threads' prior state.
    """

    def __init__(
        self,
        backends: Mapping[reservation.Backend, base.Backend],
        journal: journals.Journal,
    ) -> None:
        self._backends = backends
        self._journal = journal
        self._problems = problem_log.ProblemLog(LOG)

    def clean_up(self, uuid: str) -> None:
        """Clean up after an instance's process.

        The records of a backend that fails are kept: the next call tries
        again.
        """
        kept = set()
        for name, backend in self._backends.items():
            priors = self._journal.priors(uuid, name)
            if priors:
                try:
                    backend.clean_up(
                        {tid: prior.found for tid, prior in priors.items()}
                    )
                except Exception as error:
                    # The other instances have to be enforced meanwhile.
                    self._problems.failed(
                        uuid,
                        error,
                        'instance %s: cleaning up backend %s failed',
                        uuid,
                        name,
                    )
                    kept.add(name)
        for touched, key in self._journal.touched():
            if touched == uuid and key not in kept:
                self._journal.forget(uuid, key)

# SPDX-License-Identifier: Apache-2.0

"""Releases the threads of vCPUs that were taken offline.

Their share of the instance's reservation goes to its other vCPUs.
"""

from collections.abc import Mapping

from oslo_log import log as logging

from vsched_agent.enforcement import base
from vsched_agent.reservations import applied
from vsched_agent.state import store as journals
from vsched_lib.contract import errors
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)


class ThreadRelease:
    """Releases threads, and reacquires them when applying the rest fails.

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

    def release_threads(
        self, uuid: str, held: applied.Holding | None, desired: applied.Holding
    ) -> Mapping[int, journals.Prior]:
        """Release the threads that the desired holding does not include.

        Has to be called before the others are applied, which may need the
        capacity of these.

        :param held: what is in force.
        :returns: the prior state of the released threads.
        """
        if held is None or held.backend != desired.backend:
            return {}
        staying = {target.tid for target in desired.targets}
        leaving = [
            target for target in held.targets if target.tid not in staying
        ]
        if not leaving:
            return {}
        tids = {target.tid for target in leaving}
        priors = {
            tid: prior
            for tid, prior in self._journal.priors(uuid, held.backend).items()
            if tid in tids
        }
        try:
            self._backends[held.backend].restore(
                leaving, {tid: prior.found for tid, prior in priors.items()}
            )
        except base.NotRestored as error:
            # They stay recorded: the end of the reservation tries again.
            LOG.warning('instance %s: %s', uuid, error)
            return {}
        self._journal.forget_threads(uuid, held.backend, tids)
        return priors

    def reacquire(
        self,
        uuid: str,
        held: applied.Holding,
        priors: Mapping[int, journals.Prior],
    ) -> None:
        """Apply to all threads again what is in force.

        :param priors: from :meth:`release_threads`.
        """
        self._journal.remember(
            uuid,
            held.backend,
            held.pid,
            {tid: prior.found for tid, prior in priors.items()},
        )
        try:
            self._backends[held.backend].apply_each(held.assignments)
        except errors.Refused as refusal:
            LOG.error(
                'instance %s: reapplying its reservation failed: %s',
                uuid,
                refusal.detail,
            )

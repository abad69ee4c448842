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

"""Threads that hold no part of their instance's promise any more.

Those of vCPUs that were taken offline: what they held is for the others.
"""

from collections.abc import Mapping

from oslo_log import log as logging

from vsched_agent.enforcement import base
from vsched_agent import in_force
from vsched_agent import journal as journals
from vsched_lib.contract import errors
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)


class Leavers:
    """Leaves threads, and takes them back when nothing comes of it.

    :param backends: by name.
    :param journal: where what was found on threads is kept.
    """

    def __init__(self, backends: Mapping[reservation.Backend, base.Backend],
                 journal: journals.Journal) -> None:
        self._backends = backends
        self._journal = journal

    def let_go(self, uuid: str, held: in_force.Holding | None,
               wanted: in_force.Holding) -> Mapping[int, journals.Prior]:
        """Leave threads that are not wanted any more.

        To be called first, for what they held may be what the others are to
        get.

        :param held: what is in force.
        :returns: what had been found on them.
        """
        if held is None or held.backend != wanted.backend:
            return {}
        staying = {target.tid for target in wanted.targets}
        leaving = [target for target in held.targets
                   if target.tid not in staying]
        if not leaving:
            return {}
        tids = {target.tid for target in leaving}
        priors = {tid: prior for tid, prior in self._journal.priors(
            uuid, held.backend).items() if tid in tids}
        self._backends[held.backend].restore(
            leaving, {tid: prior.found for tid, prior in priors.items()})
        self._journal.forget_threads(uuid, held.backend, tids)
        return priors

    def take_back(self, uuid: str, held: in_force.Holding,
                  priors: Mapping[int, journals.Prior]) -> None:
        """Have all threads hold again what is in force.

        :param priors: from :meth:`let_go`.
        """
        self._journal.remember(uuid, held.backend, held.pid, {
            tid: prior.found for tid, prior in priors.items()})
        try:
            self._backends[held.backend].apply(held.targets, held.now)
        except errors.Refused as refusal:
            LOG.error('instance %s does not hold again what it held: %s',
                      uuid, refusal.detail)

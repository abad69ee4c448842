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

"""Reservations of the threads that serve instances' I/O.

Emulator, iothreads and vhost's workers are put under SCHED_DEADLINE beside
the vCPUs, whichever backend holds those: the class is above all quotas, so
a group's quota that covers the emulator does not stop it any more. Pool
threads come and go and are left alone; RESET_ON_FORK keeps them out of the
class.
"""

from collections.abc import Sequence
import typing as ty

from oslo_log import log as logging

from vsched_agent.enforcement import base
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent import in_force
from vsched_agent import journal as journals
from vsched_lib.contract import errors
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

#: Under which name the journal keeps what was found on these threads.
KEY = 'deadline-io'


class IoThreads:
    """What is in force on I/O threads. Knows nothing of who pays.

    Not thread-safe: the reconciler's thread is its only caller.

    :param backend: what enforces; None on a host without it.
    :param journal: where what was found is kept before it is changed.
    """

    def __init__(self, backend: base.Backend | None,
                 journal: journals.Journal) -> None:
        self._backend = backend
        self._journal = journal
        self._holdings: dict[str, in_force.IoHolding] = {}

    def holding(self, uuid: str) -> in_force.IoHolding | None:
        """What is in force for an instance."""
        return self._holdings.get(uuid)

    def holdings(self) -> ty.ItemsView[str, in_force.IoHolding]:
        """Everything that is in force, by instance."""
        return self._holdings.items()

    def adopt(self, domain: hypervisor.Domain, on_top: bool) -> bool:
        """Take up what an earlier agent left in force.

        :param on_top: see :class:`in_force.IoHolding`.
        :returns: whether there was anything.
        """
        targets = self._touched(domain)
        if self._backend is None or not targets:
            return False
        promises = []
        for tid, held in self._backend.read(targets).items():
            if held is not None:
                promises.append((
                    next(one for one in targets if one.tid == tid),
                    reservation.Reservation(*in_force.figures(held))))
        if promises:
            self._holdings[domain.uuid] = in_force.IoHolding(
                domain.pid, tuple(promises), on_top)
            self._backend.resume(promises)
        return bool(promises)

    def apply(self, uuid: str, wanted: in_force.IoHolding) -> None:
        """Put all of an instance's I/O threads under their promises.

        :raises errors.Refused: every thread then has what it had.
        """
        if self._backend is None:
            raise errors.Refused(
                'I/O threads are held by backend deadline, which this host '
                'does not use', errors.Code.BACKEND_UNAVAILABLE)
        current = self._holdings.get(uuid)
        if current is None or current.promises != wanted.promises:
            priors = self._journal.priors(uuid, KEY)
            unseen = [target for target, _ in wanted.promises
                      if target.tid not in priors or
                      priors[target.tid].pid != wanted.pid]
            if unseen:
                self._journal.remember(
                    uuid, KEY, wanted.pid, self._backend.prior(unseen))
            try:
                self._backend.apply_each(wanted.promises)
            except errors.Refused:
                if not priors:
                    self._journal.forget(uuid, KEY)
                raise
        self._holdings[uuid] = wanted

    def release(self, domain: hypervisor.Domain) -> bool:
        """Put back what was found on an instance's I/O threads.

        :returns: whether there was anything to put back.
        """
        self._holdings.pop(domain.uuid, None)
        priors = self._journal.priors(domain.uuid, KEY)
        if not priors or self._backend is None:
            return False
        self._backend.restore(self._touched(domain), {
            tid: prior.found for tid, prior in priors.items()
            if prior.pid == domain.pid})
        self._journal.forget(domain.uuid, KEY)
        return True

    def drop(self, uuid: str) -> None:
        """The instance is gone, and its threads with it."""
        self._holdings.pop(uuid, None)

    def attest(self) -> list[in_force.Drift]:
        """Compare the kernel with every holding and repair what differs.

        Threads that have ended are held no longer.
        """
        if self._backend is None or not self._holdings:
            return []
        found = self._backend.read([
            target for held in self._holdings.values()
            for target, _ in held.promises])
        drifts = []
        for uuid, held in list(self._holdings.items()):
            there = tuple(one for one in held.promises
                          if one[0].tid in found)
            if len(there) < len(held.promises):
                held = in_force.IoHolding(held.pid, there, held.on_top)
                self._holdings[uuid] = held
            wrong = [one for one in there if not in_force.same(
                found[one[0].tid], one[1])]
            if wrong:
                drifts.append(in_force.Drift(
                    uuid, tuple(target.tid for target, _ in wrong),
                    '; '.join('I/O thread %d held %s' % (
                        target.tid, in_force.words(found[target.tid]))
                        for target, _ in wrong)))
                self._repair(uuid, wrong)
        return drifts

    def _repair(self, uuid: str, wrong: Sequence[base.Promised]) -> None:
        assert self._backend is not None
        try:
            self._backend.apply_each(wrong)
        except errors.Refused as refusal:
            LOG.warning('instance %s: drift of I/O threads is not repaired: '
                        '%s', uuid, refusal.detail)
            # Applied anew by whoever wants it.
            del self._holdings[uuid]

    def _touched(self, domain: hypervisor.Domain) -> list[base.Target]:
        return [base.Target(index, tid) for index, (tid, prior) in enumerate(
            sorted(self._journal.priors(domain.uuid, KEY).items()))
            if prior.pid == domain.pid]

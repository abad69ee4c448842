# SPDX-License-Identifier: Apache-2.0

"""Reservations of the threads that serve instances' I/O.

Emulator, iothreads and vhost workers run under SCHED_DEADLINE whichever
backend enforces the vCPUs' reservation: CFS quotas do not apply to that
class, so a cgroup's quota that covers the emulator does not throttle it.
Pool threads are short-lived and not managed; RESET_ON_FORK keeps them out
of the class.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import types
import typing as ty

from oslo_log import log as logging

from vsched_agent.accounting import base as readings
from vsched_agent.accounting import kernel_threads
from vsched_agent.enforcement import base
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.reservations import applied
from vsched_agent.state import store as journals
from vsched_lib.contract import errors
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

#: The name under which the journal keeps these threads' prior state.
KEY = 'deadline-io'


class IoThreads:
    """Enforces the reservations of I/O threads, regardless of charging.

    Not thread-safe: the reconciler's thread is its only caller.

    :param backend: deadline; None on a host without it.
    :param journal: keeps the prior state of whatever is changed.
    """

    def __init__(
        self, backend: base.Backend | None, journal: journals.Journal
    ) -> None:
        self._backend = backend
        self._journal = journal
        self._holdings: dict[str, applied.IoHolding] = {}

    def holding(self, uuid: str) -> applied.IoHolding | None:
        """Return what is in force for an instance."""
        return self._holdings.get(uuid)

    def holdings(self) -> ty.ItemsView[str, applied.IoHolding]:
        """Return everything that is in force, by instance."""
        return self._holdings.items()

    def set_holding(self, uuid: str, holding: applied.IoHolding) -> None:
        """Replace what is known to be in force; apply nothing."""
        self._holdings[uuid] = holding

    def adopt(
        self,
        domain: hypervisor.Domain,
        room: applied.IoRoom,
        granularities: Mapping[int, int] = types.MappingProxyType({}),
    ) -> bool:
        """Take over what an earlier agent left in force.

        :param room: the capacity that it uses.
        :param granularities: into how many parts it has divided it, by
            thread.
        :returns: whether there was anything to adopt.
        """
        targets = self._touched(domain)
        if self._backend is None or not targets:
            return False
        reservations = []
        for tid, held in self._backend.read(targets).items():
            if held is not None:
                divided = granularities.get(tid, 1)
                reservations.append(
                    (
                        next(one for one in targets if one.tid == tid),
                        reservation.Reservation(
                            *held.figures(divided), granularity=divided
                        ),
                    )
                )
        if reservations:
            self._holdings[domain.uuid] = applied.IoHolding(
                domain.pid, tuple(reservations), room
            )
            self._backend.resume(reservations)
        return bool(reservations)

    def take_over(self, domain: hypervisor.Domain) -> bool:
        """Record I/O threads in the class that the journal does not know.

        Releasing them gives them the kernel's defaults.

        :returns: whether there were any.
        """
        if self._backend is None:
            return False
        known = {
            tid
            for tid, prior in self._journal.priors(domain.uuid, KEY).items()
            if prior.pid == domain.pid
        }
        tids = {*domain.emulator_tids, *domain.iothread_tids}
        serving = kernel_threads.Scanner().of(
            tids | {vcpu.tid for vcpu in domain.vcpus}, True
        )
        tids.update(
            tid for tid, role in serving.items() if role is readings.Role.VHOST
        )
        held = self._backend.read(
            [base.Target(0, tid) for tid in sorted(tids - known)]
        )
        found: dict[int, base.Prior] = {
            tid: {} for tid, one in held.items() if one is not None
        }
        if found:
            self._journal.remember(domain.uuid, KEY, domain.pid, found)
        return bool(found)

    def apply(self, uuid: str, desired: applied.IoHolding) -> None:
        """Put an instance's I/O threads under their reservations.

        :raises errors.Refused: every thread then keeps what it had.
        """
        if self._backend is None:
            if desired.reservations:
                raise errors.Refused(
                    'I/O threads need backend deadline, which is not in use '
                    'here',
                    errors.Code.BACKEND_UNAVAILABLE,
                )
            # Nothing but what the instance itself is charged for.
            self._holdings[uuid] = desired
            return
        current = self._holdings.get(uuid)
        if current is None or current.reservations != desired.reservations:
            priors = self._journal.priors(uuid, KEY)
            unseen = [
                target
                for target, _ in desired.reservations
                if target.tid not in priors
                or priors[target.tid].pid != desired.pid
            ]
            if unseen:
                self._journal.remember(
                    uuid, KEY, desired.pid, self._backend.prior(unseen)
                )
            try:
                self._backend.apply_each(desired.reservations)
            except errors.Refused:
                if not priors:
                    self._journal.forget(uuid, KEY)
                raise
        self._holdings[uuid] = desired

    def release(self, domain: hypervisor.Domain) -> bool:
        """Restore what an instance's I/O threads had.

        :returns: whether there was anything to restore.
        """
        self._holdings.pop(domain.uuid, None)
        priors = self._journal.priors(domain.uuid, KEY)
        if not priors or self._backend is None:
            return False
        self._backend.restore(
            self._touched(domain),
            {
                tid: prior.found
                for tid, prior in priors.items()
                if prior.pid == domain.pid
            },
        )
        self._journal.forget(domain.uuid, KEY)
        return True

    def drop(self, uuid: str) -> None:
        """Forget an instance whose process has ended."""
        self._holdings.pop(uuid, None)

    def attest(self) -> list[applied.Drift]:
        """Compare the kernel with every holding and repair what differs.

        Threads that have ended are removed from the holdings.
        """
        if self._backend is None or not self._holdings:
            return []
        found = self._backend.read(
            [
                target
                for held in self._holdings.values()
                for target, _ in held.reservations
            ]
        )
        drifts = []
        for uuid, held in list(self._holdings.items()):
            there = tuple(
                one for one in held.reservations if one[0].tid in found
            )
            if len(there) < len(held.reservations):
                held = dataclasses.replace(held, reservations=there)
                self._holdings[uuid] = held
            wrong = [
                one
                for one in there
                if not applied.same(found[one[0].tid], one[1])
            ]
            if wrong:
                drifts.append(
                    applied.Drift(
                        uuid,
                        tuple(target.tid for target, _ in wrong),
                        '; '.join(
                            'I/O thread %d held %s'
                            % (target.tid, applied.describe(found[target.tid]))
                            for target, _ in wrong
                        ),
                    )
                )
                self._repair(uuid, wrong)
        return drifts

    def _repair(self, uuid: str, wrong: Sequence[base.Assignment]) -> None:
        assert self._backend is not None
        try:
            self._backend.apply_each(wrong)
        except errors.Refused as refusal:
            LOG.warning(
                'instance %s: repairing drift of I/O threads failed: %s',
                uuid,
                refusal.detail,
            )
            # The next charging pass applies it again.
            del self._holdings[uuid]

    def _touched(self, domain: hypervisor.Domain) -> list[base.Target]:
        return [
            base.Target(index, tid)
            for index, (tid, prior) in enumerate(
                sorted(self._journal.priors(domain.uuid, KEY).items())
            )
            if prior.pid == domain.pid
        ]

# SPDX-License-Identifier: Apache-2.0

"""Reservations of instances' vCPU threads."""

from collections.abc import Mapping
from fractions import Fraction

from oslo_log import log as logging

from vsched_agent.enforcement import affinity
from vsched_agent.enforcement import base
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.reservations import applied
from vsched_agent.reservations import capacity_ledger
from vsched_agent.reservations import thread_release
from vsched_agent.state import store as journals
from vsched_lib.contract import errors
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)


class VcpuThreads:
    """Enforces the reservations of vCPU threads, regardless of admission.

    Not thread-safe: the reconciler's thread is its only caller.

    :param backends: by name, in order of preference.
    :param capacity: of the host; invalidated when the kernel refuses some.
    :param journal: keeps the prior state of whatever is changed.
    :param pinning: unpins threads that an agent has confined; None leaves
        them confined.
    """

    def __init__(
        self,
        backends: Mapping[reservation.Backend, base.Backend],
        capacity: capacity_ledger.Capacities,
        journal: journals.Journal,
        pinning: affinity.Affinity | None = None,
    ) -> None:
        self._backends = backends
        self._capacity = capacity
        self._journal = journal
        self._pinning = pinning
        self._holdings: dict[str, applied.Holding] = {}
        self._thread_release = thread_release.ThreadRelease(backends, journal)

    @property
    def holdings(self) -> Mapping[str, applied.Holding]:
        """Return everything that is in force, by instance."""
        return self._holdings

    def take_over(self, domain: hypervisor.Domain, damaged: bool) -> bool:
        """Record reservations in the kernel that the journal does not know.

        If there was a journal, an agent has set each quota that the
        definition does not set, and each confinement to fewer CPUs.
        Releasing the threads gives them the kernel's defaults, or what the
        definition sets. Confined threads are unpinned at once.

        :param damaged: whether there was a journal.
        :returns: whether there was anything to record.
        """
        found = False
        targets = applied.targets_of(domain)
        if damaged and self._pinning is not None:
            unpinned = [one for one in targets if one.pinned_cpus is None]
            found = bool(self._pinning.release(unpinned))
        for name, backend in self._backends.items():
            if not backend.only_agents_set and not damaged:
                continue
            known = self._priors(domain, name)
            unknown = [one for one in targets if one.tid not in known]
            priors = {
                tid: _defaults(name, domain)
                for tid, held in (
                    backend.read(unknown) if unknown else {}
                ).items()
                if held is not None
                and (held.runtime_us, held.period_us)
                != (
                    domain.vcpu_quota
                    if name is reservation.Backend.CFS
                    else None
                )
            }
            if priors:
                self._journal.remember(domain.uuid, name, domain.pid, priors)
                found = True
        return found

    def adopt(self, domain: hypervisor.Domain, granularity: int = 1) -> bool:
        """Take over what an earlier agent left in force.

        :param granularity: into how many parts it has divided it.
        :returns: whether there was anything to adopt.
        """
        for name, backend in self._backends.items():
            priors = self._priors(domain, name)
            mine = [
                target
                for target in applied.targets_of(domain)
                if target.tid in priors
            ]
            held = backend.read(mine) if mine else {}
            divided = granularity if name in reservation.GUARANTEES else 1
            # Budget expiry checks change them by a nanosecond.
            known = {one.figures(divided) for one in held.values() if one}
            try:
                # Threads that differ do not form one reservation.
                (figures,) = known
                reserved = reservation.Reservation(*figures)
            except ValueError:
                continue
            holding = self._holdings[domain.uuid] = applied.Holding(
                name,
                reserved,
                domain.pid,
                tuple(target for target in mine if held.get(target.tid)),
                granularity=divided,
            )
            backend.resume(holding.assignments)
            return True
        return False

    def set_holding(self, uuid: str, holding: applied.Holding) -> None:
        """Replace what is known to be in force; apply nothing."""
        self._holdings[uuid] = holding

    def apply(
        self, domain: hypervisor.Domain, holding: applied.Holding
    ) -> None:
        """Put a reservation in force.

        Threads that it does not include are released. What another backend
        enforces stays in force until :meth:`release_other_backends`.

        :raises errors.Refused: every thread then keeps what it had.
        """
        name = holding.backend
        backend = self._backends[name]
        priors = self._priors(domain, name)
        unseen = [
            target for target in holding.targets if target.tid not in priors
        ]
        if unseen:
            self._journal.remember(
                domain.uuid, name, domain.pid, backend.prior(unseen)
            )
        held = self._holdings.get(domain.uuid)
        left = self._thread_release.release_threads(domain.uuid, held, holding)
        try:
            backend.apply_each(holding.assignments)
        except errors.Refused as refusal:
            if refusal.code == errors.Code.KERNEL_REFUSED:
                self._capacity.invalidate()
            if not priors:
                self._journal.forget(domain.uuid, name)
            if held is not None and left:
                self._thread_release.reacquire(domain.uuid, held, left)
            raise
        self._holdings[domain.uuid] = holding

    def lower(self, uuid: str, after: applied.Holding) -> None:
        """Change what the guest has of the reservation in force.

        :param after: the same holding with another ``guest``.
        :raises errors.Refused: every thread then keeps what it had.
        """
        held = self._holdings[uuid]
        if after.now != held.now:
            self._backends[held.backend].apply_each(after.assignments)
        self._holdings[uuid] = after

    def release(self, domain: hypervisor.Domain) -> bool:
        """Restore what an instance's vCPU threads had.

        :returns: whether there was anything to restore.
        :raises base.NotRestored: see :meth:`release_other_backends`.
        """
        self._holdings.pop(domain.uuid, None)
        return self.release_other_backends(domain, None)

    def release_other_backends(
        self, domain: hypervisor.Domain, keep: reservation.Backend | None
    ) -> bool:
        """Restore what threads had before all backends but one.

        :param keep: the backend that enforces the reservation now.
        :returns: whether there was anything to restore.
        :raises base.NotRestored: when the former state of some does not fit;
            it stays recorded.
        """
        unfit: base.NotRestored | None = None
        left = False
        for name, backend in self._backends.items():
            if name == keep:
                continue
            if not self._journal.priors(domain.uuid, name):
                continue
            threads, found = self._recorded(domain, name)
            if found:
                try:
                    backend.restore(threads, found)
                except base.NotRestored as error:
                    unfit = error
                    continue
            self._journal.forget(domain.uuid, name)
            left = True
        if unfit is not None:
            raise unfit
        return left

    def restore_growth(self, domain: hypervisor.Domain) -> Fraction:
        """Return how much more of the host's CPUs a release needs, in CPUs.

        Negative when it releases some.
        """
        total = Fraction(0)
        for name, backend in self._backends.items():
            threads, found = self._recorded(domain, name)
            if found:
                total += backend.growth(threads, found)
        return total

    def _recorded(
        self, domain: hypervisor.Domain, name: reservation.Backend
    ) -> tuple[list[base.Target], dict[int, base.Prior]]:
        """Return what a backend has to restore, and the former states."""
        targets = applied.targets_of(domain)
        priors = self._priors(domain, name)
        # Threads of vCPUs that were taken offline among them.
        others = priors.keys() - {target.tid for target in targets}
        return (
            [*targets, *(base.Target(0, tid) for tid in sorted(others))],
            {tid: prior.found for tid, prior in priors.items()},
        )

    def _priors(
        self, domain: hypervisor.Domain, name: reservation.Backend
    ) -> dict[int, journals.Prior]:
        """Return the records of this boot of an instance.

        Those of its earlier boots have numbers that threads, or domains of
        Xen, of other instances may have by now.
        """
        return {
            tid: prior
            for tid, prior in self._journal.priors(domain.uuid, name).items()
            if prior.pid == domain.pid
        }

    def drop(self, uuid: str) -> None:
        """Forget an instance whose process has ended."""
        self._holdings.pop(uuid, None)

    def attest(self) -> tuple[list[applied.Drift], set[str]]:
        """Compare the kernel with every holding and repair what differs.

        :returns: what had drifted (and was repaired or is being dropped),
            and the instances whose threads have ended.
        """
        drifts: list[applied.Drift] = []
        stale: set[str] = set()
        for name, backend in self._backends.items():
            backend.refresh()
            mine = {
                uuid: held
                for uuid, held in self._holdings.items()
                if held.backend == name
            }
            found = backend.read(
                [target for held in mine.values() for target in held.targets]
            )
            for uuid, held in mine.items():
                if any(target.tid not in found for target in held.targets):
                    # The next plan applies it to the threads of that time.
                    del self._holdings[uuid]
                    stale.add(uuid)
                    continue
                wrong = [
                    target.tid
                    for target in held.targets
                    if not applied.same(found[target.tid], held.now)
                ]
                if wrong:
                    drifts.append(
                        applied.Drift(
                            uuid,
                            tuple(wrong),
                            '; '.join(
                                'thread %d held %s'
                                % (tid, applied.describe(found[tid]))
                                for tid in wrong
                            ),
                        )
                    )
        for drift in drifts:
            held = self._holdings[drift.instance_uuid]
            try:
                self._backends[held.backend].apply_each(held.assignments)
            except errors.Refused as refusal:
                LOG.warning(
                    'instance %s: repairing drift failed: %s',
                    drift.instance_uuid,
                    refusal.detail,
                )
                self._holdings.pop(drift.instance_uuid)
                self._backends[held.backend].abandon(held.targets)
                self._capacity.invalidate()
                stale.add(drift.instance_uuid)
        return drifts, stale


def _defaults(
    name: reservation.Backend, domain: hypervisor.Domain
) -> base.Prior:
    """Return the prior state to assume for a thread without a record."""
    if name is not reservation.Backend.CFS or domain.vcpu_quota is None:
        return {}
    quota_us, period_us = domain.vcpu_quota
    return {'quota_us': quota_us, 'period_us': period_us}

# SPDX-License-Identifier: Apache-2.0

"""Keeps reservations in force: admits, applies, charges, attests, releases.

Threads are enforced by :mod:`vsched_agent.reservations.vcpu_threads` and
:mod:`vsched_agent.reservations.io_threads`. This module decides what they
get, as the capacity of the host allows.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
from fractions import Fraction
import math
import typing as ty

from vsched_agent.enforcement import affinity
from vsched_agent.enforcement import base
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.reservations import admission
from vsched_agent.reservations import applied
from vsched_agent.reservations import capacity_ledger
from vsched_agent.reservations import charges
from vsched_agent.reservations import divided_periods
from vsched_agent.reservations import granularities
from vsched_agent.reservations import io_threads
from vsched_agent.reservations import thread_cleanup
from vsched_agent.reservations import unclaimed_io
from vsched_agent.reservations import vcpu_threads
from vsched_agent.state import store as journals
from vsched_lib.contract import errors
from vsched_lib.model import admission as schedulability
from vsched_lib.model import fit
from vsched_lib.model import granularity
from vsched_lib.model import reservation

_NO_MORE = fit.Ask(0)

#: See :class:`Enforcer`; called with threads.
Replacing = ty.Callable[
    [Collection[int]], contextlib.AbstractContextManager[None]
]


class Enforcer:
    """The reservations in force on this host.

    Not thread-safe: the reconciler's thread is its only caller.

    :param backends: by name, in order of preference.
    :param support: whether a backend works on this host.
    :param capacity: of the host.
    :param journal: keeps the prior state of whatever is changed.
    :param test: the admission test for the host's reservations.
    :param degrade: whether a reservation that names no backend falls back
        to a weaker one when it is refused.
    :param tick_us: the host's scheduler tick.
    :param measurements: of the host's errors and its prices of I/O.
    :param pinning: unpins threads that an agent has confined; None leaves
        them confined.
    :param limits: of divided periods; None for those of the kernel and of
        the tick.
    :param replacing: leaves out of the capacity, for the time of a context,
        what threads have without a reservation; None where they have nothing.
    """

    def __init__(
        self,
        backends: Mapping[reservation.Backend, base.Backend],
        support: ty.Callable[[reservation.Backend], base.Support],
        capacity: capacity_ledger.Capacities,
        journal: journals.Journal,
        test: schedulability.Test = schedulability.Test.BANDWIDTH,
        degrade: bool = False,
        tick_us: int = 0,
        measurements: admission.Measurements | None = None,
        pinning: affinity.Affinity | None = None,
        limits: granularity.Limits | None = None,
        replacing: Replacing | None = None,
    ) -> None:
        self._backends = backends
        self._replacing = replacing or _nothing_replaced
        self._thread_cleanup = thread_cleanup.ThreadCleanup(backends, journal)
        self._degrade = degrade
        self._vcpus = vcpu_threads.VcpuThreads(
            backends, capacity, journal, pinning
        )
        self._granularities = granularities.Granularities(
            journal,
            limits
            or granularity.Limits(tick_ns=tick_us * reservation.NS_PER_US),
        )
        #: Enforces the reservations of instances' I/O threads.
        self.io = io_threads.IoThreads(
            backends.get(reservation.Backend.DEADLINE), journal
        )
        #: Divides the periods of instances.
        self.periods = divided_periods.DividedPeriods(
            self._granularities, backends, self._vcpus, self.io
        )
        self._ledger = capacity_ledger.CapacityLedger(
            capacity, self._vcpus.holdings, self.io
        )
        #: Divides what is unclaimed among I/O threads.
        self.unclaimed_io = unclaimed_io.UnclaimedIo(
            self.io, self._ledger, self.periods.divided_io
        )
        self._admission = admission.AdmissionChecker(
            backends,
            support,
            capacity,
            measurements or admission.NoMeasurements(),
            tick_us,
            self._ledger,
            test,
        )
        #: Charges instances for the host's work on their I/O.
        self.charges = charges.Charges(
            self._vcpus,
            self.io,
            self.periods,
            self._ledger,
            self.unclaimed_io,
            self._admit,
            self._reclaiming,
        )

    def holding(self, uuid: str) -> applied.Holding | None:
        """Return what is in force for an instance."""
        return self._vcpus.holdings.get(uuid)

    def admitted_mcpu(self) -> int:
        """Return the sum of all claims, rounded up."""
        return math.ceil(reservation.MCPU_PER_CPU * self._ledger.claimed())

    def held_mcpu(self) -> dict[str, int]:
        """Return the sum of the claims of each instance, rounded up."""
        return self._ledger.by_instance_mcpu()

    def reserved_cpus(self) -> dict[str, Fraction]:
        """Return the CPUs reserved for each instance, without margins."""
        return {
            uuid: (held.asked or held.reserved).bandwidth(len(held.targets))
            for uuid, held in self._vcpus.holdings.items()
        }

    def holdings(self) -> Iterable[tuple[str, applied.Holding]]:
        """Return everything that is in force, by instance."""
        return self._vcpus.holdings.items()

    def take_over(self, domain: hypervisor.Domain, damaged: bool) -> bool:
        """Record reservations in the kernel that the journal does not know.

        For an agent that has lost its journal. Only an agent puts QEMU
        threads under SCHED_DEADLINE, so they are always its reservations.
        The prior state of such threads is unknown.

        :param damaged: whether there was a journal.
        :returns: whether there was anything to record.
        """
        self._granularities.remember(domain.uuid)
        io = self.io.take_over(domain)
        return self._vcpus.take_over(domain, damaged) or io

    def adopt(
        self,
        domain: hypervisor.Domain,
        io_room: applied.IoRoom = applied.IoRoom.ON_TOP,
    ) -> bool:
        """Take over what an earlier agent left in force.

        Nothing is applied. Until it is compared with the desired
        reservation it counts as claimed, and is attested.

        :param io_room: the capacity that its I/O threads use.
        :returns: whether there was anything to adopt.
        """
        division = self._granularities.of(domain.uuid)
        self.io.adopt(domain, io_room, division.io)
        if io_room is applied.IoRoom.UNCLAIMED:
            self.unclaimed_io.adopt(domain)
        adopted = self._vcpus.adopt(domain, division.granularity)
        if adopted:
            # It runs, so its granularity is not to be forgotten.
            self._granularities.held(
                domain.uuid, self._vcpus.holdings[domain.uuid].granularity
            )
        self._ledger.update(domain.uuid)
        return adopted

    def hold(
        self,
        domain: hypervisor.Domain,
        reserved: reservation.Reservation,
        ask: fit.Ask = _NO_MORE,
        charged: bool = False,
    ) -> errors.Refused | None:
        """Put a reservation in force, or leave everything as it was.

        It is checked as the scheduler filters check it
        (:mod:`vsched_lib.model.fit`), then by this host's own state.

        :param ask: the request besides the reservation: the bound on
            errors, the I/O rates and their charging. ``vcpus`` is ignored.
        :param charged: the instance is charged for the host's work, and
            its guest has what :attr:`charges` have left it.
        :returns: None when it is in force as asked; the cause when it is
            enforced by a weaker backend.
        :raises errors.Refused: when it is not in force; the instance keeps
            what it had.
        """
        with self._replacing([vcpu.tid for vcpu in domain.vcpus]):
            return self._hold(domain, reserved, ask, charged)

    def _hold(
        self,
        domain: hypervisor.Domain,
        reserved: reservation.Reservation,
        ask: fit.Ask,
        charged: bool,
    ) -> errors.Refused | None:
        targets = applied.targets_of(domain)
        current = self._current(domain)
        cause: errors.Refused | None = None
        ask = dataclasses.replace(ask, vcpus=len(targets), promise=reserved)
        for name in self._candidates(reserved):
            try:
                need = self._admission.need(name, ask, reserved)
                granted = dataclasses.replace(
                    reserved, runtime_us=need.runtime_us
                )
                holding = applied.Holding(
                    name,
                    granted,
                    domain.pid,
                    targets,
                    reserved,
                    granularity=self._granularities.fitting(
                        domain.uuid, granted
                    )
                    if name in reservation.GUARANTEES
                    else 1,
                )
                if charged and current is not None:
                    holding = holding.as_before(current)
                if current is not None and holding.same_as(current):
                    # A new price or less capacity does not revoke it.
                    self._vcpus.set_holding(domain.uuid, holding)
                    self._ledger.update(domain.uuid)
                    self._granularities.held(domain.uuid, holding.granularity)
                    return cause
                self._apply(
                    domain, holding, admission.Request(name, need, ask)
                )
                self._granularities.held(domain.uuid, holding.granularity)
            except errors.Refused as refusal:
                cause = cause or refusal
                continue
            # After the new backend, so that the guarantee has no gap.
            self._vcpus.release_other_backends(domain, name)
            return cause
        raise cause or errors.Refused(
            'no backend of this host guarantees CPU time; a reservation may '
            'name one of: %s' % (', '.join(self._backends) or 'none'),
            errors.Code.BACKEND_UNAVAILABLE,
        )

    def release(self, domain: hypervisor.Domain) -> bool:
        """Restore what the instance had before vsched changed it.

        :returns: whether there was anything to restore.
        :raises base.NotRestored: when what some vCPUs had does not fit any
            more. They keep what they have, without a reservation, and the
            next call tries again.
        """
        self._granularities.forget(domain.uuid)
        io = self.release_io(domain)
        try:
            return self._vcpus.release(domain) or io
        finally:
            self._ledger.update(domain.uuid)

    def restore_growth(self, domain: hypervisor.Domain) -> Fraction:
        """Return how much more of the host's CPUs :meth:`release` needs.

        :returns: in CPUs; negative when it releases some.
        """
        return self._vcpus.restore_growth(domain)

    def release_io(self, domain: hypervisor.Domain) -> bool:
        """Restore what the instance's I/O threads had.

        :returns: whether there was anything to restore.
        """
        self.unclaimed_io.forget(domain.uuid)
        released = self.io.release(domain)
        self._ledger.update(domain.uuid)
        return released

    def drop(self, uuid: str) -> None:
        """Forget an instance whose process has ended."""
        self.unclaimed_io.forget(uuid)
        self.io.drop(uuid)
        self._vcpus.drop(uuid)
        self._granularities.drop(uuid)
        self._ledger.update(uuid)
        self._thread_cleanup.clean_up(uuid)

    def attest(self) -> tuple[list[applied.Drift], set[str]]:
        """Compare the kernel with every holding and repair what differs.

        :returns: what had drifted (and was repaired or is being dropped),
            and the instances whose threads have ended.
        """
        drifts, stale = self._vcpus.attest()
        drifts += self.io.attest()
        self._ledger.recompute()
        self._granularities.prune()
        return drifts, stale

    def _current(self, domain: hypervisor.Domain) -> applied.Holding | None:
        held = self._vcpus.holdings.get(domain.uuid)
        if held is not None and held.pid != domain.pid:
            # Restarted: everything ended with its old threads.
            self.drop(domain.uuid)
            return None
        return held

    def _candidates(
        self, reserved: reservation.Reservation
    ) -> Iterable[reservation.Backend]:
        if reserved.backend is not None:
            return (reserved.backend,)
        return [
            name
            for name in self._backends
            if self._degrade or name in reservation.GUARANTEES
        ]

    def _apply(
        self,
        domain: hypervisor.Domain,
        holding: applied.Holding,
        request: admission.Request,
    ) -> None:
        io = self.io.holding(domain.uuid)
        self._admit(
            domain.uuid,
            io.claims
            if io is not None and io.room is applied.IoRoom.ON_TOP
            else [],
            [holding.claim] if holding.admitted and holding.targets else None,
            request,
        )
        if not holding.targets:
            raise errors.Refused(
                'the instance has no vCPU threads', errors.Code.THREADS_GONE
            )
        self._reclaiming(lambda: self._vcpus.apply(domain, holding))
        self._ledger.update(domain.uuid)

    def _admit(
        self,
        uuid: str,
        kept: Sequence[schedulability.Claim],
        asked: Sequence[schedulability.Claim] | None,
        request: admission.Request | None = None,
    ) -> None:
        self._admission.admit(uuid, kept, asked, request)
        if asked is None:
            return
        # Reclaim what is lent, then what others have beyond their
        # reservations, as far as needed.
        self.unclaimed_io.shrink(
            self._ledger.shortage(
                uuid,
                applied.claimed([*kept, *asked])
                + self.unclaimed_io.lent_to(uuid),
            )
        )
        for other in self._ledger.reclaimable(uuid, [*kept, *asked]):
            if (io := self.io.holding(other)) is not None:
                self.charges.lower(
                    other, self._vcpus.holdings[other].inside(io)
                )

    def _reclaiming(self, step: ty.Callable[[], None]) -> None:
        """Take a step; reclaim capacity when the kernel refuses it.

        :param step: what needs bandwidth; may be called again after a
            refusal.
        :raises errors.Refused: what the last call raises.
        """
        try:
            step()
            return
        except errors.Refused as refusal:
            last = refusal
        for _ in self.unclaimed_io.reclaim(last):
            try:
                step()
                return
            except errors.Refused as refusal:
                last = refusal
                if last.code != errors.Code.KERNEL_REFUSED:
                    break
        raise last


def _nothing_replaced(
    threads: Collection[int],
) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()

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

"""Holds reservations: admits, applies, attests, repairs, puts back."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from fractions import Fraction
import math
import typing as ty

from oslo_log import log as logging

from vsched_agent import books
from vsched_agent.enforcement import base
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent import in_force
from vsched_agent import io_threads
from vsched_agent import journal as journals
from vsched_agent import leavers
from vsched_agent import limits
from vsched_agent import verdicts
from vsched_lib.contract import errors
from vsched_lib.model import admission
from vsched_lib.model import fit
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

_NO_MORE = fit.Ask(0)


class Enforcer:
    """The reservations in force on this host.

    Not thread-safe: the reconciler's thread is its only caller.

    :param backends: by name, in order of preference.
    :param support: whether a backend works on this host.
    :param capacity: what the host can promise.
    :param journal: where what was found is kept before it is changed.
    :param test: the admission test for the host's reservations.
    :param degrade: whether a reservation that names no backend falls to a
        weaker one when it is refused.
    :param tick_us: the host's scheduler tick.
    :param measurements: what the host knows of its errors, and of what I/O
        costs.
    """

    def __init__(self, backends: Mapping[reservation.Backend, base.Backend],
                 support: ty.Callable[[reservation.Backend], base.Support],
                 capacity: limits.Capacities, journal: journals.Journal,
                 test: admission.Test = admission.Test.BANDWIDTH,
                 degrade: bool = False, tick_us: int = 0,
                 measurements: limits.Measurements | None = None) -> None:
        self._backends = backends
        self.capacity = capacity
        self._journal = journal
        self._degrade = degrade
        self._verdicts = verdicts.Verdicts(
            backends, support, capacity,
            measurements or limits.NoMeasurements(), tick_us)
        self._holdings: dict[str, in_force.Holding] = {}
        #: What holds the threads that serve instances' I/O.
        self.io = io_threads.IoThreads(
            backends.get(reservation.Backend.DEADLINE), journal)
        self._leavers = leavers.Leavers(backends, journal)
        self._books = books.Books(capacity, test, self._holdings, self.io)

    def holding(self, uuid: str) -> in_force.Holding | None:
        """What is in force for an instance."""
        return self._holdings.get(uuid)

    def claims(self, without: str | None = None) -> list[admission.Claim]:
        """Every claim on the host's real-time capacity."""
        return self._books.claims(without)

    def admitted_mcpu(self) -> int:
        """What the claims add up to, rounded up."""
        return math.ceil(
            reservation.MCPU_PER_CPU * self._books.claimed())

    def held_mcpu(self) -> dict[str, int]:
        """By instance, what it takes of the host's capacity."""
        return self._books.by_instance_mcpu()

    def promised(self) -> dict[str, Fraction]:
        """By instance, the CPUs it was promised, without margins."""
        return {uuid: (held.asked or held.promise).bandwidth(
            len(held.targets)) for uuid, held in self._holdings.items()}

    def holdings(self) -> Iterable[tuple[str, in_force.Holding]]:
        """Everything that is in force, by instance."""
        return self._holdings.items()

    def adopt(self, domain: hypervisor.Domain,
              io_on_top: bool = True) -> bool:
        """Take up what an earlier agent left in force.

        Nothing is applied. Whether it is what the instance should have is
        seen when that is asked for; until then it is counted and attested.

        :param io_on_top: see :class:`in_force.IoHolding`.
        :returns: whether there was anything.
        """
        self.io.adopt(domain, io_on_top)
        adopted = self._adopt_vcpus(domain)
        self._books.changed(domain.uuid)
        return adopted

    def _adopt_vcpus(self, domain: hypervisor.Domain) -> bool:
        for name, backend in self._backends.items():
            priors = self._journal.priors(domain.uuid, name)
            mine = [target for target in in_force.targets_of(domain)
                    if target.tid in priors and
                    priors[target.tid].pid == domain.pid]
            held = backend.read(mine) if mine else {}
            known = {enforced for enforced in held.values() if enforced}
            try:
                # Threads that differ fit no promise.
                enforced, = known
                promise = reservation.Reservation(
                    *in_force.figures(enforced))
            except ValueError:
                continue
            self._holdings[domain.uuid] = in_force.Holding(
                name, promise, domain.pid, tuple(
                    target for target in mine if held.get(target.tid)))
            backend.resume([(target, promise) for target in
                            self._holdings[domain.uuid].targets])
            return True
        return False

    def hold(self, domain: hypervisor.Domain,
             promise: reservation.Reservation,
             ask: fit.Ask = _NO_MORE,
             charged: bool = False) -> errors.Refused | None:
        """Put a promise in force, or leave everything as it was.

        Whether it may be is judged as schedulers judge it
        (:mod:`vsched_lib.model.fit`); what only this host knows comes on top.

        :param ask: what is asked besides the promise: its bound on errors,
            its I/O and who pays for that. Of how many vCPUs is seen.
        :param charged: the guest pays for the host's work with it, and
            holds what :meth:`charge` has left it.
        :returns: None when it is held as asked; the cause when it is held
            by a weaker backend.
        :raises errors.Refused: when it is not held; the instance keeps
            what it had.
        """
        targets = in_force.targets_of(domain)
        current = self._current(domain)
        cause: errors.Refused | None = None
        ask = dataclasses.replace(ask, vcpus=len(targets), promise=promise)
        host = self._verdicts.host()
        for name in self._candidates(promise):
            need = fit.need_by(name, ask, promise, host)
            try:
                self._verdicts.on_errors(name, need, ask)
                granted = dataclasses.replace(
                    promise, runtime_us=need.runtime_us)
                holding = in_force.Holding(
                    name, granted, domain.pid, targets, promise)
                if charged and current is not None:
                    holding = holding.as_before(current)
                if current is not None and holding.same_as(current):
                    # Not thrown out by a new price, or a smaller host.
                    self._keep(domain.uuid, holding)
                    return cause
                self._verdicts.on_all(name, need, ask)
                self._apply(domain, holding, need)
            except errors.Refused as refusal:
                cause = cause or refusal
                continue
            self._keep(domain.uuid, holding)
            # Only now, so that the promise was never without a keeper.
            self._leave_others(domain, name)
            return cause
        raise cause or errors.Refused(
            'no backend of this host guarantees CPU time; it has %s, which '
            'a reservation may name' % (', '.join(self._backends) or 'none'),
            errors.Code.BACKEND_UNAVAILABLE)

    def charge(self, uuid: str, io: in_force.IoHolding,
               runtime_us: int) -> None:
        """Give an instance's I/O threads promises, and its guest the rest.

        :param io: for threads of an instance that is held. What is inside
            of its promise has to be less than that.
        :param runtime_us: what shall be left to each vCPU. While the host
            has no room beside its claims it gets no more than the I/O
            threads leave of the promise.
        :raises errors.Refused: when the I/O threads keep what they had.
        """
        held = self._holdings[uuid]
        after = held.lowered(runtime_us)
        if after.now == held.now and self.io.holding(uuid) == io:
            return
        if self._books.takes_room(uuid, io):
            if self.io.holding(uuid) != io:
                self._admit(
                    uuid, [held.claim] if held.guaranteed else [], io.claims)
        else:
            spare = self._books.spare(uuid)
            if after.surplus(io) > spare:
                after = after.inside(io, spare)
        try:
            self._give(uuid, after, io)
        except errors.Refused as refusal:
            if refusal.code != errors.Code.KERNEL_REFUSED or not (
                    self._books.crowded(uuid, after, io)):
                raise
            # Somebody whom the books don't know has the room.
            self._give(uuid, held.inside(io), io)

    def _give(self, uuid: str, after: in_force.Holding,
              io: in_force.IoHolding) -> None:
        try:
            if after.now.runtime_us < self._holdings[uuid].now.runtime_us:
                self._lower(uuid, after)
                self.io.apply(uuid, io)
            else:
                self.io.apply(uuid, io)
                self._lower(uuid, after)
        finally:
            self._books.changed(uuid)

    def release(self, domain: hypervisor.Domain) -> bool:
        """Put back what was found before vsched touched the instance.

        :returns: whether there was anything to put back.
        """
        io = self.release_io(domain)
        self._holdings.pop(domain.uuid, None)
        self._books.changed(domain.uuid)
        return self._leave_others(domain, None) or io

    def release_io(self, domain: hypervisor.Domain) -> bool:
        """Put back what was found on the threads that serve its I/O.

        :returns: whether there was anything to put back.
        """
        released = self.io.release(domain)
        self._books.changed(domain.uuid)
        return released

    def drop(self, uuid: str) -> None:
        """The instance is gone, and its threads with it."""
        self.io.drop(uuid)
        self._holdings.pop(uuid, None)
        self._books.changed(uuid)
        self._journal.forget(uuid)

    def attest(self) -> tuple[list[in_force.Drift], set[str]]:
        """Compare the kernel with every holding and repair what differs.

        :returns: what had drifted (and was repaired or is being dropped),
            and the instances whose threads are not there any more.
        """
        drifts: list[in_force.Drift] = []
        stale: set[str] = set()
        for name, backend in self._backends.items():
            mine = {uuid: held for uuid, held in self._holdings.items()
                    if held.backend == name}
            found = backend.read([
                target for held in mine.values() for target in held.targets])
            for uuid, held in mine.items():
                if any(target.tid not in found for target in held.targets):
                    # Planned anew with the threads it has by then.
                    del self._holdings[uuid]
                    stale.add(uuid)
                    continue
                wrong = [target.tid for target in held.targets
                         if not in_force.same(found[target.tid], held.now)]
                if wrong:
                    drifts.append(in_force.Drift(uuid, tuple(wrong), '; '.join(
                        'thread %d held %s' % (tid, in_force.words(found[tid]))
                        for tid in wrong)))
        for drift in drifts:
            held = self._holdings[drift.instance_uuid]
            try:
                self._backends[held.backend].apply(
                    held.targets, held.now)
            except errors.Refused as refusal:
                LOG.warning('instance %s: drift is not repaired: %s',
                            drift.instance_uuid, refusal.detail)
                self._holdings.pop(drift.instance_uuid)
                self.capacity.invalidate()
                stale.add(drift.instance_uuid)
        drifts += self.io.attest()
        self._books.add_up()
        return drifts, stale

    def _current(self, domain: hypervisor.Domain) -> in_force.Holding | None:
        held = self._holdings.get(domain.uuid)
        if held is not None and held.pid != domain.pid:
            # Started anew: its old threads took everything with them.
            self.drop(domain.uuid)
            return None
        return held

    def _candidates(self, promise: reservation.Reservation,
                    ) -> Iterable[reservation.Backend]:
        if promise.backend is not None:
            return (promise.backend,)
        return [name for name in self._backends
                if self._degrade or name in reservation.GUARANTEES]

    def _apply(self, domain: hypervisor.Domain, holding: in_force.Holding,
               need: fit.Need) -> None:
        name, targets = holding.backend, holding.targets
        backend = self._backends[name]
        if not targets:
            raise errors.Refused('the instance has no vCPU threads',
                                 errors.Code.THREADS_GONE)
        if name in reservation.GUARANTEES:
            io = self.io.holding(domain.uuid)
            kept = io.claims if io is not None and io.on_top else []
            self._admit(domain.uuid, kept, [holding.claim], need)
        priors = self._journal.priors(domain.uuid, name)
        unseen = [target for target in targets if target.tid not in priors]
        if unseen:
            self._journal.remember(
                domain.uuid, name, domain.pid, backend.prior(unseen))
        held = self._holdings.get(domain.uuid)
        left = self._leavers.let_go(domain.uuid, held, holding)
        try:
            backend.apply(targets, holding.now)
        except errors.Refused as refusal:
            if refusal.code == errors.Code.KERNEL_REFUSED:
                self.capacity.invalidate()
            if not priors:
                self._journal.forget(domain.uuid, name)
            if held is not None and left:
                self._leavers.take_back(domain.uuid, held, left)
            raise

    def _admit(self, uuid: str, kept: Sequence[admission.Claim],
               asked: Sequence[admission.Claim],
               need: fit.Need | None = None) -> None:
        self._books.admit(uuid, kept, asked)
        if need is not None:
            self._books.afford(uuid, need)
        # What others hold beyond their promises goes, if it is in the way.
        for other in self._books.in_the_way(uuid, [*kept, *asked]):
            io = self.io.holding(other)
            if io is not None:
                self._lower(other, self._holdings[other].inside(io))

    def _lower(self, uuid: str, after: in_force.Holding) -> None:
        held = self._holdings[uuid]
        if after.now != held.now:
            self._backends[held.backend].apply(held.targets, after.now)
        self._keep(uuid, after)

    def _keep(self, uuid: str, holding: in_force.Holding) -> None:
        self._holdings[uuid] = holding
        self._books.changed(uuid)

    def _leave_others(self, domain: hypervisor.Domain,
                      keep: reservation.Backend | None) -> bool:
        targets = in_force.targets_of(domain)
        left = False
        for name, backend in self._backends.items():
            if name == keep:
                continue
            priors = self._journal.priors(domain.uuid, name)
            if priors:
                # Threads of vCPUs that were taken offline among them.
                others = [base.Target(0, tid) for tid in sorted(
                    priors.keys() - {target.tid for target in targets})]
                backend.restore([*targets, *others], {
                    tid: prior.found for tid, prior in priors.items()
                    if prior.pid == domain.pid})
                self._journal.forget(domain.uuid, name)
                left = True
        return left

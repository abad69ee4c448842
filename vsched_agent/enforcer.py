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

from vsched_agent.enforcement import base
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent import journal as journals
from vsched_agent import limits
from vsched_lib.contract import errors
from vsched_lib.model import admission
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Holding:
    """What the kernel was made to hold for one instance.

    :param promise: what the kernel holds, margins included.
    :param asked: what the instance was promised; None when an earlier agent
        put it in force.
    """

    backend: reservation.Backend
    promise: reservation.Reservation
    pid: int
    targets: tuple[base.Target, ...]
    asked: reservation.Reservation | None = None

    @property
    def claim(self) -> admission.Claim:
        """The holding as admission sees it."""
        return _claim(self.promise, self.targets)

    @property
    def bandwidth(self) -> Fraction:
        """Σ Q/P over the vCPUs, in CPUs."""
        return self.promise.bandwidth(len(self.targets))


@dataclasses.dataclass(frozen=True, slots=True)
class Drift:
    """One instance whose threads were not as they should be.

    :param tids: the threads.
    :param found: what was found, in words.
    """

    instance_uuid: str
    tids: tuple[int, ...]
    found: str


def targets_of(domain: hypervisor.Domain) -> tuple[base.Target, ...]:
    """The vCPU threads of an instance as enforcement sees them."""
    return tuple(base.Target(vcpu.index, vcpu.tid, vcpu.pinned_cpus)
                 for vcpu in domain.vcpus)


def _claim(promise: reservation.Reservation,
           targets: Sequence[base.Target]) -> admission.Claim:
    return admission.Claim(promise, tuple(
        next(iter(target.pinned_cpus))
        if target.pinned_cpus is not None and len(target.pinned_cpus) == 1
        else None for target in targets))


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
    :param margins: what promises with a bound on their error need.
    """

    def __init__(self, backends: Mapping[reservation.Backend, base.Backend],
                 support: ty.Callable[[reservation.Backend], base.Support],
                 capacity: limits.Capacities, journal: journals.Journal,
                 test: admission.Test = admission.Test.BANDWIDTH,
                 degrade: bool = False, tick_us: int = 0,
                 margins: limits.Margins | None = None) -> None:
        self._backends = backends
        self._support = support
        self.capacity = capacity
        self._journal = journal
        self._test = test
        self._degrade = degrade
        self._tick_us = tick_us
        self._margins = margins or limits.NoMargins()
        self._holdings: dict[str, Holding] = {}

    def holding(self, uuid: str) -> Holding | None:
        """What is in force for an instance."""
        return self._holdings.get(uuid)

    def claims(self, without: str | None = None) -> list[admission.Claim]:
        """Every claim on the host's real-time capacity."""
        return [held.claim for uuid, held in self._holdings.items()
                if uuid != without and held.backend in reservation.GUARANTEES]

    def admitted_mcpu(self) -> int:
        """What the claims add up to, rounded up."""
        return math.ceil(reservation.MCPU_PER_CPU * sum(
            (held.bandwidth for held in self._holdings.values()
             if held.backend in reservation.GUARANTEES), Fraction(0)))

    def promised(self) -> dict[str, Fraction]:
        """By instance, the CPUs it was promised, without margins."""
        return {uuid: (held.asked or held.promise).bandwidth(
            len(held.targets)) for uuid, held in self._holdings.items()}

    def holdings(self) -> Iterable[tuple[str, Holding]]:
        """Everything that is in force, by instance."""
        return self._holdings.items()

    def adopt(self, domain: hypervisor.Domain) -> bool:
        """Take up what an earlier agent left in force.

        Nothing is applied. Whether it is what the instance should have is
        seen when that is asked for; until then it is counted and attested.

        :returns: whether there was anything.
        """
        for name, backend in self._backends.items():
            priors = self._journal.priors(domain.uuid, name)
            mine = [target for target in targets_of(domain)
                    if target.tid in priors and
                    priors[target.tid].pid == domain.pid]
            held = backend.read(mine) if mine else {}
            in_force = {enforced for enforced in held.values() if enforced}
            try:
                # Threads that differ fit no promise.
                enforced, = in_force
                promise = reservation.Reservation(*_figures(enforced))
            except ValueError:
                continue
            self._holdings[domain.uuid] = Holding(
                name, promise, domain.pid, tuple(
                    target for target in mine if held.get(target.tid)))
            return True
        return False

    def hold(self, domain: hypervisor.Domain,
             promise: reservation.Reservation,
             bound_ppm: int | None = None) -> errors.Refused | None:
        """Put a promise in force, or leave everything as it was.

        :param bound_ppm: what may be missing in one second of a hundred, in
            ppm of the promise; None when anything may.
        :returns: None when it is held as asked; the cause when it is held
            by a weaker backend.
        :raises errors.Refused: when it is not held; the instance keeps
            what it had.
        """
        targets = targets_of(domain)
        current = self._current(domain)
        cause: errors.Refused | None = None
        for name in self._candidates(promise):
            try:
                granted = self._margins.grant(promise, name, bound_ppm)
                holding = Holding(
                    name, granted, domain.pid, targets, promise)
                if (current is not None and current.backend == name and
                        _figures(current.promise) == _figures(granted) and
                        current.targets == targets):
                    self._holdings[domain.uuid] = holding
                    return cause
                self._apply(name, domain, targets, granted)
            except errors.Refused as refusal:
                cause = cause or refusal
                continue
            self._holdings[domain.uuid] = holding
            # Only now, so that the promise was never without a keeper.
            self._leave_others(domain, name)
            return cause
        raise cause or errors.Refused(
            'no backend of this host guarantees CPU time; it has %s, which '
            'a reservation may name' % (', '.join(self._backends) or 'none'),
            errors.Code.BACKEND_UNAVAILABLE)

    def release(self, domain: hypervisor.Domain) -> bool:
        """Put back what was found before vsched touched the instance.

        :returns: whether there was anything to put back.
        """
        self._holdings.pop(domain.uuid, None)
        return self._leave_others(domain, None)

    def drop(self, uuid: str) -> None:
        """The instance is gone, and its threads with it."""
        self._holdings.pop(uuid, None)
        self._journal.forget(uuid)

    def attest(self) -> tuple[list[Drift], set[str]]:
        """Compare the kernel with every holding and repair what differs.

        :returns: what had drifted (and was repaired or is being dropped),
            and the instances whose threads are not there any more.
        """
        drifts: list[Drift] = []
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
                         if not _same(found[target.tid], held.promise)]
                if wrong:
                    drifts.append(Drift(uuid, tuple(wrong), '; '.join(
                        'thread %d held %s' % (tid, _words(found[tid]))
                        for tid in wrong)))
        for drift in drifts:
            held = self._holdings[drift.instance_uuid]
            try:
                self._backends[held.backend].apply(
                    held.targets, held.promise)
            except errors.Refused as refusal:
                LOG.warning('instance %s: drift is not repaired: %s',
                            drift.instance_uuid, refusal.detail)
                self._holdings.pop(drift.instance_uuid)
                self.capacity.invalidate()
                stale.add(drift.instance_uuid)
        return drifts, stale

    def _current(self, domain: hypervisor.Domain) -> Holding | None:
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

    def _apply(self, name: reservation.Backend, domain: hypervisor.Domain,
               targets: Sequence[base.Target],
               promise: reservation.Reservation) -> None:
        backend = self._backends.get(name)
        if backend is None:
            raise errors.Refused(
                'this host has no backend %s; it has %s' % (
                    name, ', '.join(self._backends)),
                errors.Code.BACKEND_UNAVAILABLE)
        support = self._support(name)
        if not support.usable:
            raise errors.Refused(
                'backend %s: %s' % (name, '; '.join(support.reasons)),
                errors.Code.BACKEND_UNAVAILABLE)
        problems = promise.problems(name, self._tick_us)
        if problems:
            raise errors.Refused(
                '; '.join(problems), errors.Code.RESERVATION_INVALID)
        if not targets:
            raise errors.Refused('the instance has no vCPU threads',
                                 errors.Code.THREADS_GONE)
        if name in reservation.GUARANTEES:
            self._admit(domain.uuid, targets, promise)
        priors = self._journal.priors(domain.uuid, name)
        unseen = [target for target in targets if target.tid not in priors]
        if unseen:
            self._journal.remember(
                domain.uuid, name, domain.pid, backend.prior(unseen))
        try:
            backend.apply(targets, promise)
        except errors.Refused as refusal:
            if refusal.code == errors.Code.KERNEL_REFUSED:
                self.capacity.invalidate()
            if not priors:
                self._journal.forget(domain.uuid, name)
            raise

    def _admit(self, uuid: str, targets: Sequence[base.Target],
               promise: reservation.Reservation) -> None:
        capacity = self.capacity.current()
        others = self.claims(without=uuid)
        verdict = admission.admit(
            [*others, _claim(promise, targets)], capacity, self._test)
        if verdict.fits:
            return
        asked_mcpu = promise.bandwidth_mcpu(len(targets))
        raise errors.Refused(
            '%d mcpu asked; %s' % (asked_mcpu, verdict.reason),
            errors.Code.DOES_NOT_FIT, {
                'asked_mcpu': asked_mcpu,
                'needed_mcpu': verdict.needed_mcpu,
                'allowed_mcpu': verdict.bound_mcpu,
                'capacity_mcpu': capacity.capacity_mcpu,
                'test': str(verdict.test), 'cpu': verdict.cpu})

    def _leave_others(self, domain: hypervisor.Domain,
                      keep: reservation.Backend | None) -> bool:
        targets = targets_of(domain)
        left = False
        for name, backend in self._backends.items():
            if name == keep:
                continue
            priors = self._journal.priors(domain.uuid, name)
            if priors:
                backend.restore(targets, {
                    tid: prior.found for tid, prior in priors.items()
                    if prior.pid == domain.pid})
                self._journal.forget(domain.uuid, name)
                left = True
        return left


def _figures(one: base.Enforced | reservation.Reservation,
             ) -> tuple[int, int, reservation.Mode]:
    return one.runtime_us, one.period_us, one.mode


def _same(held: base.Enforced | None,
          promise: reservation.Reservation) -> bool:
    return held is not None and _figures(held) == _figures(promise)


def _words(held: base.Enforced | None) -> str:
    if held is None:
        return 'no reservation'
    return '%s %d us every %d us' % (
        held.mode, held.runtime_us, held.period_us)

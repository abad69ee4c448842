# SPDX-License-Identifier: Apache-2.0

"""Reservations as weights and caps of Xen's schedulers Credit2 and Credit.

A domain has one weight and one cap for all of its vCPUs, which are set
together from the reservations of all of them: see
:mod:`vsched_lib.model.credit`. Mode ``work_conserving`` has no cap. Neither
keeps a period: what is read back is the reservation while the domain has its
parameters, and a share otherwise.

A domain with the parameters that Xen gives to new ones counts as one without a
reservation, unless this backend has set them.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from fractions import Fraction
import math
import threading

from oslo_log import log as logging

from vsched_agent.enforcement import base
from vsched_agent.enforcement.xen import former_domains
from vsched_agent.enforcement.xen import scheduler
from vsched_agent.enforcement.xen import vcpus
from vsched_lib.contract import errors
from vsched_lib.model import credit
from vsched_lib.model import reservation
from vsched_lib.model import rtds

LOG = logging.getLogger(__name__)

#: The reservation of each vCPU with one, by its number.
_Reserved = dict[int, reservation.Reservation]


class CreditBackend(base.Backend):
    """Gives each domain a weight, and a cap unless it is work-conserving.

    :param name: credit2 or credit.
    :param found: the hypervisor's scheduler.
    """

    def __init__(
        self,
        name: reservation.Backend,
        found: scheduler.Scheduler | None = None,
    ) -> None:
        self.name = name
        self.scheduler = found or scheduler.Scheduler()
        self._lock = threading.Lock()
        self._reserved: dict[int, _Reserved] = {}

    def supports(self) -> base.Support:
        """Return whether the hypervisor runs this scheduler, on one pool."""
        return vcpus.support(self.name, self.scheduler, self._missing)

    def _missing(self, found: scheduler.Scheduler) -> str:
        return 'the hypervisor runs %s: start it with sched=%s' % (
            found.name,
            self.name,
        )

    def admissible(self, replaced: Collection[int]) -> Fraction:
        """Return what reservations may have in total, in CPUs.

        Weights of domains without a reservation count, also the first one's.

        :param replaced: vCPUs that ask for a reservation.
        :raises scheduler.SchedulerUnavailable: when Xen does not answer.
        """
        with self._lock:
            reserved = {*self._reserved, *_by_domain(replaced)}
        others = credit.total(
            one
            for domid, one in self.scheduler.domains().items()
            if domid not in reserved
        )
        return max(Fraction(0), self.scheduler.cpus - others)

    def prior(self, targets: Sequence[base.Target]) -> dict[int, base.Prior]:
        """Return the parameters of the domain of each vCPU.

        :raises errors.Refused: when the hypervisor does not answer.
        """
        with vcpus.refused_if_unavailable():
            found = self.scheduler.domains(newest=True)
        return {
            number: former_domains.record(found[domid])
            for domid, numbers in _by_domain(_numbers(targets)).items()
            if domid in found
            for number in numbers
        }

    def apply_each(self, assignments: Sequence[base.Assignment]) -> None:
        """Apply the reservations of all vCPUs of an instance.

        What other vCPUs of the same domain had counts no more.

        :raises errors.Refused: also when the hypervisor does not answer
            before anything is set.
        :raises scheduler.SchedulerUnavailable: when it does not answer later,
            or former parameters could not be restored.
        """
        reserved = {target.tid: one for target, one in assignments}
        domains = _by_domain(reserved)
        wanted = {
            domid: _parameters(self.name, [reserved[one] for one in numbers])
            for domid, numbers in domains.items()
        }
        with vcpus.refused_if_unavailable():
            before = self.scheduler.domains(newest=True)
        vcpus.check_all_run(
            reserved,
            [
                number
                for domid, numbers in domains.items()
                if domid in before
                for number in numbers
            ],
        )
        changed = {
            domid: one for domid, one in wanted.items() if before[domid] != one
        }
        self._warn(changed, reserved.values())
        problem = self._set(changed)
        if problem:
            after = self.scheduler.domains(newest=True)
            unrestored = self._set(
                {
                    domid: before[domid]
                    for domid in changed
                    if domid in after and after[domid] != before[domid]
                }
            )
            vcpus.check_all_run(
                reserved,
                [
                    number
                    for domid, numbers in domains.items()
                    if domid in after
                    for number in numbers
                ],
            )
            if unrestored:
                raise vcpus.not_restored(unrestored)
            raise vcpus.refused(problem)
        self._remember(reserved)

    def resume(self, assignments: Sequence[base.Assignment]) -> None:
        """Take the vCPUs for reserved; see the base class."""
        self._remember({target.tid: one for target, one in assignments})

    def abandon(self, targets: Sequence[base.Target]) -> None:
        """See the base class: what they have counts like that of others."""
        with self._lock:
            for domid, numbers in _by_domain(_numbers(targets)).items():
                left = {
                    number: one
                    for number, one in self._reserved.pop(domid, {}).items()
                    if number not in numbers
                }
                if left:
                    self._reserved[domid] = left

    def refresh(self) -> None:
        """Forget domains that have ended."""
        with self._lock:
            if not self._reserved:
                return
        found = self.scheduler.domains()
        with self._lock:
            for domid in self._reserved.keys() - found.keys():
                del self._reserved[domid]

    def read(
        self, targets: Sequence[base.Target]
    ) -> dict[int, base.Enforced | None]:
        """See the base class; needs a process unless one has just ended."""
        found = self.scheduler.domains()
        known: dict[int, base.Enforced | None] = {}
        for domid, numbers in _by_domain(_numbers(targets)).items():
            if domid not in found:
                continue
            with self._lock:
                reserved = self._reserved.get(domid, {})
            for number in numbers:
                known[number] = self._enforced(
                    found[domid], len(numbers), number, reserved
                )
        return known

    def restore(
        self, targets: Sequence[base.Target], prior: Mapping[int, base.Prior]
    ) -> None:
        """See the base class; the default is that of new domains.

        A domain of which other vCPUs keep their reservations gets what these
        need. The others with the smallest change are restored first, and only
        as many as there are CPUs for.

        :raises scheduler.SchedulerUnavailable: when domains that still run
            keep what they have.
        """
        self.abandon(targets)
        found = self.scheduler.domains(newest=True)
        wanted = self._after(targets, prior, found)
        fitting, left = rtds.restorable(self.scheduler.cpus, found, wanted)
        problem = self._set({domid: wanted[domid] for domid in fitting})
        if problem and (
            self.scheduler.domains(newest=True).keys() >= set(fitting)
        ):
            raise vcpus.not_restored(problem)
        kept = wanted.keys() - set(fitting)
        if kept:
            raise former_domains.does_not_fit(
                _by_domain(_numbers(targets)),
                {domid: found[domid] for domid in kept},
                {domid: wanted[domid] for domid in kept},
                left,
            )

    def growth(
        self, targets: Sequence[base.Target], prior: Mapping[int, base.Prior]
    ) -> Fraction:
        """See the base class.

        :raises scheduler.SchedulerUnavailable: when it does not answer.
        """
        found = self.scheduler.domains()
        wanted = former_domains.of(_by_domain(_numbers(targets)), prior)
        return sum(
            (
                one.utilisation - found[domid].utilisation
                for domid, one in wanted.items()
                if domid in found
            ),
            Fraction(0),
        )

    def _after(
        self,
        targets: Sequence[base.Target],
        prior: Mapping[int, base.Prior],
        found: Mapping[int, credit.Parameters],
    ) -> dict[int, credit.Parameters]:
        """Return what domains are to have, as far as they have it not."""
        wanted = former_domains.of(_by_domain(_numbers(targets)), prior)
        with self._lock:
            for domid in wanted.keys() & self._reserved.keys():
                wanted[domid] = credit.Parameters.of(
                    self._reserved[domid].values()
                )
        return {
            domid: one
            for domid, one in wanted.items()
            if domid in found and found[domid] != one
        }

    def _remember(self, reserved: _Reserved) -> None:
        with self._lock:
            for domid, numbers in _by_domain(reserved).items():
                self._reserved[domid] = {
                    number: reserved[number] for number in numbers
                }

    def _enforced(
        self,
        found: credit.Parameters,
        count: int,
        number: int,
        reserved: _Reserved,
    ) -> base.Enforced | None:
        """Return what one vCPU has.

        :param count: how many vCPUs of the domain there are.
        :param reserved: of this domain's vCPUs.
        """
        own = reserved.get(number)
        if own is None:
            if found == credit.DEFAULT:
                return None
        elif found == credit.Parameters.of(reserved.values()):
            return base.Enforced.of(own)
        period_us = credit.KEPT_US[self.name]
        if own is not None and own.period_us == period_us:
            # What has drifted must not look like what was reserved.
            period_us *= 2
        return base.Enforced(
            max(1, math.floor(found.share(count) * period_us))
            * reservation.NS_PER_US,
            period_us * reservation.NS_PER_US,
            found.mode,
        )

    def _warn(
        self,
        changed: Iterable[int],
        reserved: Iterable[reservation.Reservation],
    ) -> None:
        """Log what an operator should know, once per instance and change."""
        for domid in sorted(changed)[:1]:
            for caution in sorted(
                {
                    caution
                    for one in reserved
                    for caution in credit.cautions(self.name, one)
                }
            ):
                LOG.warning('domain %d: %s', domid, caution)

    def _set(self, values: Mapping[int, credit.Parameters]) -> str:
        """Set parameters, those that release something first.

        :returns: empty on success, else the first reason. What can be set of
            the others is.
        """
        found = self.scheduler.domains() if len(values) > 1 else {}
        problems = [
            self.scheduler.set_domain(domid, one)
            for domid, one in sorted(
                values.items(),
                key=lambda item: (
                    item[1].utilisation
                    - found.get(item[0], credit.DEFAULT).utilisation
                ),
            )
        ]
        return next(filter(None, problems), '')


def _numbers(targets: Iterable[base.Target]) -> list[int]:
    return [target.tid for target in targets]


def _by_domain(numbers: Iterable[int]) -> dict[int, list[int]]:
    """Return the numbers of vCPUs by domain, in order of their indexes."""
    found: dict[int, list[int]] = {}
    for number in sorted(numbers):
        key = vcpus.key_of(number)
        if key is not None:
            found.setdefault(key[0], []).append(number)
    return found


def _parameters(
    name: reservation.Backend, reserved: Sequence[reservation.Reservation]
) -> credit.Parameters:
    problems = sorted(
        {text for one in reserved for text in one.problems(name)}
    )
    if not problems:
        try:
            return credit.Parameters.of(reserved)
        except ValueError as problem:
            problems = [str(problem)]
    raise errors.Refused('; '.join(problems), errors.Code.RESERVATION_INVALID)

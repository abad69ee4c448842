# SPDX-License-Identifier: Apache-2.0

"""The CPU capacity of a Xen host.

RTDS gives each vCPU of each domain a budget, and Credit2 and Credit give each
domain a weight, also those without a reservation and the first domain. All of
them take any sum. So what reservations may have is the host's CPUs without
what all others have.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import dataclasses
from fractions import Fraction
import typing as ty

from oslo_log import log as logging

from vsched_agent.enforcement import base
from vsched_agent.enforcement.xen import credit
from vsched_agent.enforcement.xen import rtds
from vsched_agent.enforcement.xen import scheduler
from vsched_lib.model import host
from vsched_lib import problem_log

LOG = logging.getLogger(__name__)

Backend = rtds.RtdsBackend | credit.CreditBackend


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """What there is besides the capacity.

    :param leaked_mcpu: none: Xen keeps no account that could be wrong.
    """

    leaked_mcpu: int = 0


class XenCapacity:
    """The host's capacity.

    :param backends: that may be used; the one whose scheduler runs knows what
        others have. Without it there is no capacity.
    :param reserve_mcpu: milli-CPU kept for the host.
    :param found: the hypervisor's scheduler; that of the backends when None.
    """

    def __init__(
        self,
        backends: Iterable[Backend],
        reserve_mcpu: int = 0,
        found: scheduler.Scheduler | None = None,
    ) -> None:
        self._backends = {str(one.name): one for one in backends}
        self._reserve_mcpu = reserve_mcpu
        self._scheduler = (
            found
            or next((one.scheduler for one in self._backends.values()), None)
            or scheduler.Scheduler()
        )
        self._problems = problem_log.ProblemLog(LOG)
        self._replaced: frozenset[int] = frozenset()
        self._cpus = 1

    def current(self) -> host.Capacity:
        """Return what the host can reserve: 0 when Xen does not answer."""
        try:
            admissible = self._admissible()
        except scheduler.SchedulerUnavailable as failure:
            self._problems.failed(
                'capacity', failure, "the host's capacity is not known"
            )
            admissible = Fraction(0)
        return host.Capacity(self._cpus, admissible, self._reserve_mcpu)

    def _admissible(self) -> Fraction:
        self._cpus = self._scheduler.cpus
        running = self._backends.get(self._scheduler.name)
        if running is None:
            return Fraction(0)
        return running.admissible(self._replaced)

    @contextlib.contextmanager
    def replacing(self, numbers: Collection[int]) -> Iterator[None]:
        """Leave out what some vCPUs have, as a reservation replaces it.

        Not thread-safe: the reconciler's thread is its only caller.

        :param numbers: of the vCPUs that ask for a reservation.
        """
        self._replaced = frozenset(numbers)
        try:
            yield
        finally:
            self._replaced = frozenset()

    def invalidate(self) -> None:
        """Do nothing: nothing is kept for long."""

    def measured(self) -> Measured:
        """Return what there is besides the capacity."""
        return Measured()


def of(backends: Iterable[base.Backend], reserve_mcpu: int) -> XenCapacity:
    """Return the capacity of a host.

    :param backends: as they are in use; those of other hypervisors are
        ignored.
    :param reserve_mcpu: milli-CPU kept for the host.
    """
    return XenCapacity(
        [one for one in backends if isinstance(one, ty.get_args(Backend))],
        reserve_mcpu,
    )

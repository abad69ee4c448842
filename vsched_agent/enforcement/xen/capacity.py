# SPDX-License-Identifier: Apache-2.0

"""The CPU capacity of a Xen host that runs RTDS.

RTDS gives each vCPU of each domain a budget, also those without a reservation
and those of the first domain, and takes any sum of them. So what reservations
may have is the host's CPUs without the budgets of all others.
"""

from collections.abc import Collection
from collections.abc import Iterator
import contextlib
import dataclasses
from fractions import Fraction

from oslo_log import log as logging

from vsched_agent.enforcement import base
from vsched_agent.enforcement.xen import rtds as backends
from vsched_agent.enforcement.xen import scheduler
from vsched_agent.hypervisor.xen import vcpu_ids
from vsched_lib.model import host
from vsched_lib.model import rtds
from vsched_lib import problem_log

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """What there is besides the capacity.

    :param leaked_mcpu: none: Xen keeps no account that could be wrong.
    """

    leaked_mcpu: int = 0


class XenCapacity:
    """The host's capacity.

    :param backend: knows which vCPUs have a reservation.
    :param reserve_mcpu: milli-CPU kept for the host.
    """

    def __init__(
        self, backend: backends.RtdsBackend, reserve_mcpu: int = 0
    ) -> None:
        self._backend = backend
        self._scheduler = backend.scheduler
        self._reserve_mcpu = reserve_mcpu
        self._problems = problem_log.ProblemLog(LOG)
        self._replaced: frozenset[scheduler.Key] = frozenset()
        self._cpus = 1

    def current(self) -> host.Capacity:
        """Return what the host can reserve: 0 when Xen does not answer."""
        try:
            self._cpus = self._scheduler.cpus
            others = self.others()
        except scheduler.SchedulerUnavailable as failure:
            self._problems.failed(
                'capacity', failure, "the host's capacity is not known"
            )
            return host.Capacity(self._cpus, Fraction(0))
        return host.Capacity(
            self._cpus,
            rtds.admissible(self._cpus, others.values()),
            self._reserve_mcpu,
        )

    def others(self) -> dict[scheduler.Key, rtds.Parameters]:
        """Return the parameters of all vCPUs without a reservation.

        :raises scheduler.SchedulerUnavailable: when Xen does not answer.
        """
        reserved = self._backend.reserved() | self._replaced
        return {
            key: one
            for key, one in self._scheduler.parameters().items()
            if key not in reserved
        }

    @contextlib.contextmanager
    def replacing(self, numbers: Collection[int]) -> Iterator[None]:
        """Leave out what some vCPUs have, as a reservation replaces it.

        Not thread-safe: the reconciler's thread is its only caller.

        :param numbers: of the vCPUs that ask for a reservation.
        """
        self._replaced = frozenset(map(vcpu_ids.decode, numbers))
        try:
            yield
        finally:
            self._replaced = frozenset()

    def invalidate(self) -> None:
        """Do nothing: nothing is kept for long."""

    def measured(self) -> Measured:
        """Return what there is besides the capacity."""
        return Measured()


def of(backend: base.Backend | None, reserve_mcpu: int) -> XenCapacity:
    """Return the capacity of a host.

    :param backend: rtds as it is in use; None when it is not enabled.
    :param reserve_mcpu: milli-CPU kept for the host.
    """
    return XenCapacity(
        backend
        if isinstance(backend, backends.RtdsBackend)
        else backends.RtdsBackend(),
        reserve_mcpu,
    )

# SPDX-License-Identifier: Apache-2.0

"""The backends of this host, in order of preference."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import threading
import time
import types
import typing as ty

from oslo_config import cfg

from vsched_agent.conf import hypervisor as hypervisor_conf
from vsched_agent.enforcement import base
from vsched_agent.enforcement import budget_expiry
from vsched_agent.enforcement import capacity
from vsched_agent.enforcement import cfs
from vsched_agent.enforcement import deadline
from vsched_agent.enforcement import partitions
from vsched_agent.enforcement import reclaim
from vsched_agent.host import cpu_list
from vsched_lib.model import reservation


def enabled(conf: cfg.ConfigOpts | None) -> list[reservation.Backend]:
    """Return the backends of this host's kind of hypervisor, in order.

    :param conf: options with the group ``enforcement``; None for all that
        hosts of KVM have.
    """
    if conf is None:
        return list(_MADE_BY)
    xen = hypervisor_conf.is_xen(conf)
    return [
        reservation.Backend(name)
        for name in conf.enforcement.backends
        if (name in _OF_XEN) is xen
    ]


def budget_check_us(conf: cfg.ConfigOpts | None) -> int:
    """Return the longest delay of a budget expiry check; 0 disables them.

    :param conf: options with the group ``enforcement``; None for the
        defaults.
    """
    if conf is None or reservation.Backend.DEADLINE not in enabled(conf):
        return 0
    return int(conf.enforcement.budget_check_us)


def use_idle_time(conf: cfg.ConfigOpts | None) -> bool:
    """Return whether work-conserving threads get idle CPU time.

    :param conf: options with the group ``enforcement``; None for the
        defaults.
    """
    return (
        conf is not None
        and bool(conf.enforcement.use_idle_time)
        and (reservation.Backend.DEADLINE in enabled(conf))
    )


def partition_cpus(conf: cfg.ConfigOpts | None) -> frozenset[int]:
    """Return the CPUs that may become partitions of pinned vCPUs.

    :param conf: options with the group ``enforcement``; None for the
        defaults.
    """
    if conf is None:
        return frozenset()
    return cpu_list.parse(conf.enforcement.partition_cpus)


def reserve_mcpu(conf: cfg.ConfigOpts) -> int:
    """Return the milli-CPU that enforcement itself reserves.

    :param conf: options with the group ``enforcement``.
    """
    return (
        budget_expiry.BudgetChecks(budget_check_us(conf)).reserve_mcpu
        + reclaim.IdleTime(use_idle_time(conf)).reserve_mcpu
    )


def _deadline(conf: cfg.ConfigOpts | None) -> base.Backend:
    return deadline.DeadlineBackend(
        checks=budget_expiry.BudgetChecks(budget_check_us(conf)),
        idle=reclaim.IdleTime(use_idle_time(conf)),
        isolation=partitions.Partitions(partition_cpus(conf)),
    )


_MADE_BY: Mapping[
    reservation.Backend, Callable[[cfg.ConfigOpts | None], base.Backend]
] = {
    reservation.Backend.DEADLINE: _deadline,
    reservation.Backend.CFS: lambda conf: cfs.CfsBackend(),
}
_OF_XEN = frozenset(reservation.Backend) - reservation.OF_LINUX


def _make(conf: cfg.ConfigOpts | None) -> list[base.Backend]:
    """Return the enabled backends, in order."""
    names = enabled(conf)
    if names and _OF_XEN.issuperset(names):
        # Imported on hosts of Xen only.
        from vsched_agent.enforcement.xen import backends as of_xen

        return of_xen.make(names)
    return [_MADE_BY[name](conf) for name in names]


#: Only an operator changes what a host supports.
_SUPPORT_AGE_S = 60.0


class HostCapacity(ty.NamedTuple):
    """The capacity of a host.

    :param source: returns it.
    :param replacing: see :class:`vsched_agent.reservations.enforcer.Enforcer`.
    """

    source: capacity.HostCapacity
    replacing: (
        Callable[[Collection[int]], contextlib.AbstractContextManager[None]]
        | None
    ) = None


def capacity_of(
    conf: cfg.ConfigOpts,
    backends: Mapping[reservation.Backend, base.Backend],
    reserve_mcpu: int,
) -> HostCapacity:
    """Return the capacity of this host.

    :param backends: those of the host.
    :param reserve_mcpu: milli-CPU kept for the host.
    """
    if hypervisor_conf.is_xen(conf):
        from vsched_agent.enforcement.xen import capacity as xen_capacity

        found = xen_capacity.of(backends.values(), reserve_mcpu)
        return HostCapacity(found, found.replacing)
    return HostCapacity(capacity.KernelCapacity(reserve_mcpu=reserve_mcpu))


class Ladder:
    """The backends that this host may use. Thread-safe.

    :param conf: options with the group ``enforcement``; None for the
        defaults.
    :param backends: use these instead, in this order.
    :param clock: monotonic seconds.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts | None = None,
        backends: Iterable[base.Backend] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if backends is None:
            backends = _make(conf)
        self.backends: Mapping[reservation.Backend, base.Backend] = (
            types.MappingProxyType(
                {backend.name: backend for backend in backends}
            )
        )
        self._clock = clock
        self._lock = threading.Lock()
        self._found: dict[reservation.Backend, tuple[float, base.Support]] = {}

    def support(self, name: reservation.Backend) -> base.Support:
        """Return whether the host can use a backend; cached for a minute.

        :param name: any backend, also one that is not enabled here.
        """
        backend = self.backends.get(name)
        if backend is None:
            return base.Support(
                False, ('backend %s is not enabled on this host' % name,)
            )
        with self._lock:
            age, found = self._found.get(name, (0.0, None))
            now = self._clock()
            if found is None or now - age >= _SUPPORT_AGE_S:
                found = backend.supports()
                self._found[name] = (now, found)
            return found

    def check_status(self) -> budget_expiry.CheckStatus:
        """Return the state of the budget expiry checks."""
        backend = self.backends.get(reservation.Backend.DEADLINE)
        return (
            backend.check_status
            if isinstance(backend, deadline.DeadlineBackend)
            else budget_expiry.CheckStatus()
        )

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

"""The backends of this host, the preferred one first."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import threading
import time
import types
import typing as ty

from oslo_config import cfg

from vsched_agent.enforcement import base
from vsched_agent.enforcement import budgets
from vsched_agent.enforcement import cfs
from vsched_agent.enforcement import deadline
from vsched_lib.model import reservation


def budget_check_us(conf: cfg.ConfigOpts | None) -> int:
    """How soon after its end a budget is looked at; 0 for never.

    :param conf: options with the group ``enforcement``; None for the
        defaults.
    """
    if conf is None or reservation.Backend.DEADLINE not in (
            conf.enforcement.backends):
        return 0
    return int(conf.enforcement.budget_check_us)


def reserve_mcpu(conf: cfg.ConfigOpts) -> int:
    """What enforcement itself takes of the host, and can not be promised.

    :param conf: options with the group ``enforcement``.
    """
    return budgets.BudgetChecks(budget_check_us(conf)).reserve_mcpu


def _deadline(conf: cfg.ConfigOpts | None) -> base.Backend:
    return deadline.DeadlineBackend(
        checks=budgets.BudgetChecks(budget_check_us(conf)))


_MADE_BY: Mapping[reservation.Backend,
                  Callable[[cfg.ConfigOpts | None], base.Backend]] = {
    reservation.Backend.DEADLINE: _deadline,
    reservation.Backend.CFS: lambda conf: cfs.CfsBackend(),
}

#: What a host can do changes only by an operator's hand.
_SUPPORT_AGE_S = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """Which backend shall enforce a reservation.

    :param backend: the first that can; None when none can.
    :param reasons: why those before it can not.
    """

    backend: base.Backend | None
    reasons: tuple[str, ...] = ()


class Ladder:
    """Every backend this host may use. Safe from any thread.

    :param conf: options with the group ``enforcement``; None for the
        defaults.
    :param backends: use these instead, in this order.
    :param clock: seconds that never go back.
    """

    def __init__(self, conf: cfg.ConfigOpts | None = None,
                 backends: Iterable[base.Backend] | None = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        if backends is None:
            names: ty.Iterable[str] = (
                _MADE_BY if conf is None else conf.enforcement.backends)
            backends = [_MADE_BY[reservation.Backend(name)](conf)
                        for name in names]
        self.backends: Mapping[reservation.Backend, base.Backend] = (
            types.MappingProxyType({
                backend.name: backend for backend in backends}))
        self._clock = clock
        self._lock = threading.Lock()
        self._found: dict[reservation.Backend,
                          tuple[float, base.Support]] = {}

    def support(self, name: reservation.Backend) -> base.Support:
        """Whether the host can use a backend; asked once a minute.

        :param name: any backend, also one this host does not have.
        """
        backend = self.backends.get(name)
        if backend is None:
            return base.Support(False, (
                'backend %s is not one this host may use' % name,))
        with self._lock:
            age, found = self._found.get(name, (0.0, None))
            now = self._clock()
            if found is None or now - age >= _SUPPORT_AGE_S:
                found = backend.supports()
                self._found[name] = (now, found)
            return found

    def choose(self, promise: reservation.Reservation,
               tick_us: int = 0) -> Choice:
        """The backend a reservation names, or the first that can hold it.

        :param promise: what shall be held.
        :param tick_us: the host's tick, to refuse budgets that build up
            debt.
        """
        reasons: list[str] = []
        names = ([promise.backend] if promise.backend is not None
                 else list(self.backends))
        for name in names:
            support = self.support(name)
            if not support.usable:
                reasons += ['%s: %s' % (name, reason)
                            for reason in support.reasons]
                continue
            problems = promise.problems(name, tick_us)
            if problems:
                reasons += ['%s: %s' % (name, problem)
                            for problem in problems]
                continue
            return Choice(self.backends[name], tuple(reasons))
        return Choice(None, tuple(reasons))

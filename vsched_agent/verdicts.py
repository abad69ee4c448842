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

"""Whether this host can keep a promise: what schedulers ask, of its own facts.

The core is theirs (:mod:`vsched_lib.model.fit`); the words are the agent's,
which knows more of the host than it tells.
"""

from collections.abc import Callable
from collections.abc import Mapping

from vsched_agent.enforcement import base
from vsched_agent import limits
from vsched_lib.contract import errors
from vsched_lib.model import fit
from vsched_lib.model import reservation


class Verdicts:
    """Judges what instances ask of this host, but for what is in use there.

    :param backends: by name, in order of preference.
    :param support: whether a backend works on this host.
    :param capacity: what the host can promise.
    :param measurements: of the host's errors and of what I/O costs.
    :param tick_us: the host's scheduler tick.
    """

    def __init__(self, backends: Mapping[reservation.Backend, base.Backend],
                 support: Callable[[reservation.Backend], base.Support],
                 capacity: limits.Capacities,
                 measurements: limits.Measurements, tick_us: int) -> None:
        self._backends = backends
        self._support = support
        self._capacity = capacity
        self._measurements = measurements
        self._tick_us = tick_us

    def host(self) -> fit.Host:
        """This host as schedulers are told of it."""
        capacity = self._capacity.current()
        known = self._measurements.measured()
        return fit.Host(
            capacity.cpus, self._tick_us, capacity.capacity_mcpu,
            frozenset(str(name) for name in self._backends
                      if self._support(name).usable),
            known.certified, known.prices, known.policy)

    def on_errors(self, name: reservation.Backend, need: fit.Need,
                  ask: fit.Ask) -> None:
        """Refuse what the host's errors speak against, among other things.

        :param name: of the backend that would hold it.
        :param need: what it would take.
        :raises errors.Refused: of the first of them, with the figures.
        """
        if any(one.cause is fit.Cause.ERROR for one in need.problems):
            self.on_all(name, need, ask)

    def on_all(self, name: reservation.Backend, need: fit.Need,
               ask: fit.Ask) -> None:
        """Refuse what anything speaks against.

        :param name: of the backend that would hold it.
        :raises errors.Refused: with the figures.
        """
        if name not in self._backends:
            raise errors.Refused(
                'this host has no backend %s; it has %s' % (
                    name, ', '.join(self._backends)),
                errors.Code.BACKEND_UNAVAILABLE)
        support = self._support(name)
        if not support.usable:
            raise errors.Refused(
                'backend %s: %s' % (name, '; '.join(support.reasons)),
                errors.Code.BACKEND_UNAVAILABLE)
        first = need.refusal
        if first is None:
            return
        if first.cause in (fit.Cause.ERROR, fit.Cause.OVERHEAD):
            raise self._measurements.refusal(need, first, ask)
        raise errors.Refused(
            '; '.join(one.detail for one in need.problems
                      if one.cause is first.cause),
            limits.CODES[first.cause])

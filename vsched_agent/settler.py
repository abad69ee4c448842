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

"""Has one instance hold what it should, and says what came of it."""

from collections.abc import Callable
import dataclasses

from vsched_agent import bulletin as bulletins
from vsched_agent import charging as chargings
from vsched_agent import enforcer as enforcers
from vsched_agent.hypervisor import base
from vsched_agent import sources
from vsched_agent import wanted as wants
from vsched_lib.contract import errors
from vsched_lib.contract import messages

State = messages.State


class Settler:
    """Brings what instances should have together with what they have.

    Not thread-safe: the reconciler's thread is its only caller.

    :param enforcer: what holds the reservations.
    :param charging: decides who pays for the host's work on I/O.
    :param balloons: which vCPUs instances have.
    :param bulletin: hears what came of it.
    :param costs: tells what I/O costs; None when nobody knows.
    :param on_room: called when an instance gave room back.
    """

    def __init__(self, enforcer: enforcers.Enforcer,
                 charging: chargings.Charging, balloons: sources.Balloons,
                 bulletin: bulletins.Bulletin, costs: sources.Costs | None,
                 on_room: Callable[[], None]) -> None:
        self._enforcer = enforcer
        self._charging = charging
        self._balloons = balloons
        self._bulletin = bulletin
        self._costs = costs
        self._on_room = on_room
        self._unpriced_told: dict[str, str] = {}

    def forget(self, uuid: str) -> None:
        """The instance is gone."""
        self._unpriced_told.pop(uuid, None)

    def settle(self, domain: base.Domain, wanted: wants.Wanted) -> bool:
        """Have an instance hold what it should, as far as it can.

        :returns: whether that is all for now; False when its threads were
            gone, so that it has to be tried again.
        """
        shaped, promise = self._balloons.of(domain, wanted.promise)
        state, cause = State.APPLIED, wanted.problem
        if wanted.problem is None:
            charged = self._charging.want(domain, wanted.io_charging)
        if wanted.problem is not None:
            state = State.REFUSED
        elif promise is None:
            if self._enforcer.release(domain):
                self._on_room()
            elif domain.uuid not in self._bulletin.spoken_of:
                self._balloons.settled(domain.uuid, None)
                return True
            state = State.RELEASED
        else:
            before = self._enforcer.holding(domain.uuid)
            try:
                cause = self._enforcer.hold(
                    shaped, promise, wanted.ask, charged)
            except errors.Refused as refusal:
                cause = refusal
                state = (State.PENDING
                         if refusal.code == errors.Code.THREADS_GONE
                         else State.REFUSED)
            else:
                if cause is not None:
                    state = State.DEGRADED
            self._unpriced(domain, wanted)
            held = self._enforcer.holding(domain.uuid)
            if before is not None and (
                    held is None or held.bandwidth < before.bandwidth):
                self._on_room()
        self._bulletin.reservation(
            domain, wanted, self._enforcer.holding(domain.uuid), state, cause)
        self._balloons.settled(
            domain.uuid, None if state is State.DEGRADED else cause)
        return state is not State.PENDING

    def _unpriced(self, domain: base.Domain, wanted: wants.Wanted) -> None:
        if self._costs is None or wanted.ask.charged is None or not any(
                dataclasses.astuple(wanted.ask.rates)):
            return
        why = self._costs.problem()
        if why is not None and self._unpriced_told.get(domain.uuid) != why:
            self._unpriced_told[domain.uuid] = why
            self._bulletin.event(
                errors.Code.IO_UNPRICED, messages.Severity.INFO,
                '%s: %s' % (domain.name, why), domain.uuid)

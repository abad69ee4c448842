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

"""Keeps placement in step with this host, on a thread of its own.

Whatever placement does, or does not do, enforcement goes on.
"""

import random
import threading
import typing as ty

from oslo_log import log as logging

from vsched_agent.placement import desired as desires
from vsched_agent.placement import sync
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import placement as names
from vsched_lib.openstack import placement
from vsched_lib.openstack import session

LOG = logging.getLogger(__name__)

State = names.PlacementState
Severity = messages.Severity

#: The first pause after a failure, in seconds; it doubles up to the interval.
FIRST_PAUSE_S = 1.0

#: What takes an event: code, severity, sentence.
Tell = ty.Callable[[errors.Code, Severity, str], None]


class Keeper:
    """Writes to placement what the host is, whenever either changes.

    :param connect: makes the client; called at every try until it works.
    :param interval_s: between two looks when nothing is known to differ.
    :param tell: takes events, from the keeper's thread.
    """

    def __init__(self, connect: ty.Callable[[], placement.Placement],
                 interval_s: float, tell: Tell) -> None:
        self._connect = connect
        self._interval_s = interval_s
        self._tell = tell
        self._client: placement.Placement | None = None
        self._lock = threading.Lock()
        self._desired: desires.Desired | None = None
        self._info = names.PlacementInfo(
            State.WAITING, 'the host was not looked at yet')
        # What the last event was about; none tells of the beginning.
        self._said: State | None = None
        self._over = False
        self._failures = 0
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name='vsched-placement', daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, patience_s: float = 5.0) -> None:
        """End; what placement knows stays as it is.

        :param patience_s: for a request under way, which may be to a
            service that is away.
        """
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(patience_s)

    def want(self, desired: desires.Desired) -> None:
        """This is what the host is now. Returns at once."""
        with self._lock:
            news = desired != self._desired
            self._desired = desired
        if news:
            self._wake.set()

    def info(self) -> names.PlacementInfo:
        """How the host stands with placement."""
        with self._lock:
            return self._info

    def _run(self) -> None:
        while not self._stopping.is_set():
            pause_s = self._interval_s
            try:
                self.look()
            except Exception:
                LOG.exception('placement was not looked at; enforcement '
                              'goes on')
            if self._failures:
                pause_s = min(pause_s, FIRST_PAUSE_S * 2 ** min(
                    self._failures - 1, 20)) * random.uniform(0.75, 1.25)
                # News must not hurry a service that is in trouble.
                self._stopping.wait(pause_s)
                self._wake.clear()
            else:
                self._wake.wait(pause_s)
                self._wake.clear()

    def look(self) -> None:
        """Compare once, and write what differs."""
        with self._lock:
            desired = self._desired
        if desired is None:
            return
        try:
            if self._client is None:
                self._client = self._connect()
            outcome = sync.sync(self._client, desired, self._stopping.wait)
        except sync.NoCompute as problem:
            # That is how it is until nova-compute has started, or when its
            # service was deleted.
            self._failures = 0
            self._is(State.WAITING, str(problem))
        except (placement.PlacementError, session.Unavailable) as problem:
            self._failures += 1
            # It may have moved, or have been upgraded.
            self._client = None
            self._is(State.FAILED, str(problem))
        else:
            self._failures = 0
            self._succeeded(outcome)

    def _succeeded(self, outcome: sync.Outcome) -> None:
        inventory = outcome.inventory
        self._is(State.SYNCED, '', provider_uuid=outcome.uuid,
                 offered_mcpu=inventory.total - inventory.reserved,
                 claimed_mcpu=outcome.claimed_mcpu)
        over = outcome.over_mcpu > 0
        if over and not self._over:
            self._tell(
                errors.Code.PLACEMENT_OVERCLAIMED, Severity.WARNING,
                'instances claim %d mcpu of this host in placement, %d more '
                'than it can promise; placement sends no others' % (
                    outcome.claimed_mcpu, outcome.over_mcpu))
        self._over = over

    def _is(self, state: State, detail: str, **figures: ty.Any) -> None:
        before = self.info()
        if not figures:
            figures = {'provider_uuid': before.provider_uuid,
                       'offered_mcpu': before.offered_mcpu,
                       'claimed_mcpu': before.claimed_mcpu}
        with self._lock:
            self._info = names.PlacementInfo(state, detail, **figures)
        if state == self._said:
            return
        self._said = state
        if state == State.SYNCED:
            self._tell(errors.Code.PLACEMENT_SYNCED, Severity.INFO,
                       'placement knows what this host can promise: %d mcpu'
                       % figures['offered_mcpu'])
        elif state == State.FAILED:
            self._tell(errors.Code.PLACEMENT_FAILED, Severity.ERROR, detail)
        else:
            self._tell(errors.Code.PLACEMENT_WAITING, Severity.WARNING,
                       detail)

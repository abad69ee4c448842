# SPDX-License-Identifier: Apache-2.0

"""Keeps placement synchronized with this host, on a thread of its own.

A failure of placement does not affect enforcement.
"""

import random
import threading
import typing as ty

from oslo_log import log as logging

from vsched_agent.placement import inventory as desires
from vsched_agent.placement import sync
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import placement as names
from vsched_lib.openstack import placement
from vsched_lib.openstack import session
from vsched_lib import problem_log

LOG = logging.getLogger(__name__)

State = names.PlacementState
Severity = messages.Severity

#: The first pause after a failure, in seconds; it doubles up to the interval.
FIRST_PAUSE_S = 1.0

#: Takes an event: code, severity, sentence.
Notify = ty.Callable[[errors.Code, Severity, str], None]


class Synchronizer:
    """Writes the host's desired state to placement.

    :param connect: makes the client; called at each attempt until it works.
    :param interval_s: between two comparisons while nothing changes here.
    :param notify: takes events, from the synchronizer's thread.
    """

    def __init__(
        self,
        connect: ty.Callable[[], placement.Placement],
        interval_s: float,
        notify: Notify,
    ) -> None:
        self._connect = connect
        self._interval_s = interval_s
        self._notify = notify
        self._client: placement.Placement | None = None
        self._lock = threading.Lock()
        self._desired: desires.Desired | None = None
        self._info = names.PlacementInfo(
            State.WAITING, "the host's capacity is not known yet"
        )
        # The state of the last event; there is none for the first state.
        self._reported_state: State | None = None
        self._over = False
        self._failures = 0
        self._wake = threading.Event()
        self._problems = problem_log.ProblemLog(LOG)
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name='vsched-placement', daemon=True
        )

    def start(self) -> None:
        """Start the synchronizer's thread."""
        self._thread.start()

    def stop(self, patience_s: float = 5.0) -> None:
        """Stop the thread; placement keeps what was written.

        :param patience_s: longest wait for a request under way.
        """
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(patience_s)

    def set_desired(self, desired: desires.Desired) -> None:
        """Set the state that placement should have. Returns at once."""
        with self._lock:
            changed = desired != self._desired
            self._desired = desired
        if changed:
            self._wake.set()

    def info(self) -> names.PlacementInfo:
        """Return the state of the synchronization."""
        with self._lock:
            return self._info

    def _run(self) -> None:
        while not self._stopping.is_set():
            pause_s = self._interval_s
            try:
                self.run_once()
            except Exception as error:
                self._problems.failed(
                    'placement',
                    error,
                    'synchronizing placement failed; enforcement goes on',
                )
            if self._failures:
                pause_s = min(
                    pause_s, FIRST_PAUSE_S * 2 ** min(self._failures - 1, 20)
                ) * random.uniform(0.75, 1.25)
                # A change must not shorten the pause after a failure.
                self._stopping.wait(pause_s)
                self._wake.clear()
            else:
                self._wake.wait(pause_s)
                self._wake.clear()

    def run_once(self) -> None:
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
            # Normal until nova-compute has started, or when its service
            # was deleted.
            self._failures = 0
            self._set_state(State.WAITING, str(problem))
        except (placement.PlacementError, session.Unavailable) as problem:
            self._failures += 1
            # Placement may have moved, or have been upgraded.
            self._client = None
            self._set_state(State.FAILED, str(problem))
        else:
            self._failures = 0
            self._succeeded(outcome)

    def _succeeded(self, outcome: sync.Outcome) -> None:
        inventory = outcome.inventory
        self._set_state(
            State.SYNCED,
            '',
            provider_uuid=outcome.uuid,
            offered_mcpu=inventory.total - inventory.reserved,
            claimed_mcpu=outcome.claimed_mcpu,
        )
        over = outcome.over_mcpu > 0
        before, self._over = self._over, over
        if over and not before:
            self._notify(
                errors.Code.PLACEMENT_OVERCLAIMED,
                Severity.WARNING,
                'instances claim %d mcpu of this host in placement, %d more '
                'than its capacity; placement offers it to no others'
                % (outcome.claimed_mcpu, outcome.over_mcpu),
            )

    def _set_state(self, state: State, detail: str, **figures: ty.Any) -> None:
        before = self.info()
        if not figures:
            figures = {
                'provider_uuid': before.provider_uuid,
                'offered_mcpu': before.offered_mcpu,
                'claimed_mcpu': before.claimed_mcpu,
            }
        with self._lock:
            self._info = names.PlacementInfo(state, detail, **figures)
        if state == self._reported_state:
            return
        self._reported_state = state
        if state == State.SYNCED:
            self._notify(
                errors.Code.PLACEMENT_SYNCED,
                Severity.INFO,
                'placement has the capacity of this host: %d mcpu'
                % figures['offered_mcpu'],
            )
        elif state == State.FAILED:
            self._notify(errors.Code.PLACEMENT_FAILED, Severity.ERROR, detail)
        else:
            self._notify(
                errors.Code.PLACEMENT_WAITING, Severity.WARNING, detail
            )

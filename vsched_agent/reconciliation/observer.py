# SPDX-License-Identifier: Apache-2.0

"""Observes which instances run, and whether the hypervisor answers."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import threading
import time

from vsched_agent.hypervisor import base
from vsched_agent.reporting import events as event_queue
from vsched_lib.contract import errors
from vsched_lib.contract import messages

#: The driver connects in the background. An unreachable hypervisor is
#: reported as lost only after this time from the start, in seconds.
GRACE_S = 10.0


class Observer:
    """The running instances.

    Not thread-safe but for :meth:`mark` and :meth:`mark_all`: the
    reconciler's thread is its only caller.

    :param hypervisor: the driver; started and stopped by the service.
    :param full_sync_s: time between two listings of all instances.
    :param events: receives the loss and the return of the hypervisor.
    :param on_listed: called with all running instances, by UUID, before
        :attr:`domains` changes.
    :param on_ended: called with an instance that no longer runs, unless
        all are listed.
    """

    def __init__(
        self,
        hypervisor: base.Hypervisor,
        full_sync_s: float,
        events: event_queue.Events,
        on_listed: Callable[[Mapping[str, base.Domain]], None],
        on_ended: Callable[[str], None],
    ) -> None:
        self._hypervisor = hypervisor
        self._full_sync_s = full_sync_s
        self._events = events
        self._on_listed = on_listed
        self._on_ended = on_ended
        self._domains: dict[str, base.Domain] = {}
        self._reachable: bool | None = None
        self._lost_at = time.monotonic() + GRACE_S
        self._next_sync = 0.0
        self._lock = threading.Lock()
        self._dirty: set[str] = set()
        self._sync = True

    @property
    def domains(self) -> Mapping[str, base.Domain]:
        """Return the running instances by UUID, as last observed."""
        return self._domains

    @property
    def reachable(self) -> bool | None:
        """Return whether the hypervisor answers.

        None until it has answered or is reported as lost.
        """
        return self._reachable

    def mark(self, uuids: Iterable[str]) -> None:
        """Have instances observed next time. Safe from any thread."""
        with self._lock:
            self._dirty.update(uuids)

    def mark_all(self) -> None:
        """Have all instances listed next time. Safe from any thread."""
        with self._lock:
            self._sync = True

    def observe(self) -> set[str]:
        """Ask the hypervisor about marked instances, or list all.

        :returns: the instances to plan: those that were marked, and those
            that have changed; none while the hypervisor does not answer.
        """
        now = time.monotonic()
        with self._lock:
            dirty, self._dirty = self._dirty, set()
            sync = self._sync or now >= self._next_sync
            self._sync = False
        try:
            if sync:
                found = {one.uuid: one for one in self._hypervisor.domains()}
                self._next_sync = now + self._full_sync_s
                self._on_listed(found)
                dirty |= {
                    uuid
                    for uuid, one in found.items()
                    if self._domains.get(uuid) != one
                }
                self._domains = found
            else:
                for uuid in dirty:
                    one = self._hypervisor.domain(uuid)
                    if one is not None:
                        self._domains[uuid] = one
                    elif uuid in self._domains:
                        del self._domains[uuid]
                        self._on_ended(uuid)
        except Exception as error:
            with self._lock:
                self._dirty |= dirty
                self._sync = self._sync or sync
            if not isinstance(error, base.HypervisorUnavailable):
                raise
            self._set_reachable(False, str(error))
            return set()
        self._set_reachable(True, 'the hypervisor answers again')
        return dirty

    def _set_reachable(self, reachable: bool, detail: str) -> None:
        before = self._reachable
        if reachable == before or (
            before is None
            and not reachable
            and time.monotonic() < self._lost_at
        ):
            return
        self._reachable = reachable
        if before is None and reachable:
            return
        self._events.add(
            errors.Code.HYPERVISOR_BACK
            if reachable
            else errors.Code.HYPERVISOR_LOST,
            messages.Severity.INFO if reachable else messages.Severity.ERROR,
            detail,
        )

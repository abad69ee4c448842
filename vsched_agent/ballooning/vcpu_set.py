# SPDX-License-Identifier: Apache-2.0

"""The vCPUs that hold an instance's reservation.

All of them, unless some were taken offline: then the remaining ones hold the
whole reservation. Ballooning's threads request a change here and wait; the
reconciler's thread applies it and reports the result.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import threading

from oslo_log import log as logging

from vsched_agent.hypervisor import base
from vsched_lib.contract import errors
from vsched_lib.model import balloon
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

#: Longest wait for the reconciler, in seconds.
RECONCILE_TIMEOUT_S = 15.0


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """The vCPUs that hold a reservation.

    :param pid: the process that it applies to.
    :param online: indexes of the vCPUs.
    :param pins: CPU by vCPU, for those that are bound.
    """

    pid: int
    online: frozenset[int]
    pins: Mapping[int, int] = dataclasses.field(default_factory=dict)


class _Ticket:
    def __init__(
        self, before: Shape | None, unpin: Callable[[], None] | None
    ) -> None:
        self.before = before
        self.done = threading.Event()
        self.problem: errors.VschedError | None = None
        self._lock = threading.Lock()
        self._unpin = unpin

    def unpin_once(self) -> None:
        """Unpin the threads once; later calls do nothing."""
        with self._lock:
            unpin, self._unpin = self._unpin, None
            if unpin is None:
                return
            try:
                unpin()
            except Exception:
                # The reservation is refused then, with the cause.
                LOG.exception('threads cannot be unpinned')


class Shapes:
    """Safe from any thread; :meth:`of` and :meth:`reconciled` are the
    reconciler's.

    :param changed: makes the reconciler handle an instance.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._shapes: dict[str, Shape] = {}
        self._tickets: dict[str, _Ticket] = {}
        self._seen: dict[str, _Ticket] = {}
        self._reservations: dict[str, reservation.Reservation | None] = {}

    def expect(self, uuid: str, shape: Shape) -> None:
        """Restore a recorded set without applying it."""
        with self._lock:
            self._shapes[uuid] = shape

    def forget(self, uuid: str) -> None:
        """Forget an instance that does not run any more."""
        with self._lock:
            self._shapes.pop(uuid, None)

    def keep(self, uuids: Collection[str]) -> None:
        """Forget the reservations of all instances but these."""
        with self._lock:
            for uuid in self._reservations.keys() - set(uuids):
                del self._reservations[uuid]

    def reserved(self, uuid: str) -> reservation.Reservation | None:
        """Return the reservation of each vCPU when all are online."""
        with self._lock:
            return self._reservations.get(uuid)

    def reshape(
        self,
        uuid: str,
        shape: Shape | None,
        timeout_s: float = RECONCILE_TIMEOUT_S,
        *,
        unpin: Callable[[], None] | None = None,
    ) -> None:
        """Move a reservation, and wait until that is done.

        :param shape: None for all vCPUs.
        :param unpin: unpins the threads that the former shape has bound.
            Called by the reconciler's thread, right before it looks at them
            with the new shape; done at any other time, it would take them
            for threads that have unexpected_online, and bind them again.
        :raises errors.Refused: when it is not held so; it is where it was.
        """
        with self._lock:
            ticket = _Ticket(self._shapes.get(uuid), unpin)
            self._tickets[uuid] = ticket
            self._put(uuid, shape)
        self._changed(uuid)
        if not ticket.done.wait(timeout_s):
            ticket.unpin_once()
            ticket.problem = errors.Refused(
                'the reservation was not moved within %g s' % timeout_s,
                errors.Code.THREADS_GONE,
            )
        if ticket.problem is None:
            return
        with self._lock:
            if self._tickets.get(uuid) is ticket:
                del self._tickets[uuid]
                # A move back to all vCPUs stays requested.
                if shape is not None:
                    self._put(uuid, ticket.before)
        self._changed(uuid)
        raise errors.Refused(ticket.problem.detail, ticket.problem.code)

    def of(
        self, domain: base.Domain, reserved: reservation.Reservation | None
    ) -> tuple[base.Domain, reservation.Reservation | None]:
        """Return the vCPUs that hold a reservation, and the part of each."""
        with self._lock:
            self._reservations[domain.uuid] = reserved
            shape = self._shapes.get(domain.uuid)
            ticket = self._tickets.get(domain.uuid)
            if ticket is not None:
                self._seen[domain.uuid] = ticket
        if ticket is not None:
            ticket.unpin_once()
        if shape is None or shape.pid != domain.pid:
            return domain, reserved
        vcpus = tuple(
            dataclasses.replace(
                vcpu,
                bound=True,
                pinned_cpus=frozenset((shape.pins[vcpu.index],)),
            )
            if vcpu.index in shape.pins
            else vcpu
            for vcpu in domain.vcpus
            if vcpu.index in shape.online
        )
        if not vcpus:
            return domain, reserved
        return dataclasses.replace(domain, vcpus=vcpus), (
            None
            if reserved is None
            else balloon.conserved(reserved, len(domain.vcpus), len(vcpus))
        )

    def reconciled(
        self, uuid: str, problem: errors.VschedError | None
    ) -> None:
        """Report the reconciler's result for what :meth:`of` returned.

        :param problem: why the reservation is not held, or None.
        """
        with self._lock:
            ticket = self._seen.pop(uuid, None)
            if ticket is None:
                return
            if problem is None and self._tickets.get(uuid) is ticket:
                del self._tickets[uuid]
            ticket.problem = problem
            ticket.done.set()

    def _put(self, uuid: str, shape: Shape | None) -> None:
        if shape is None:
            self._shapes.pop(uuid, None)
        else:
            self._shapes[uuid] = shape

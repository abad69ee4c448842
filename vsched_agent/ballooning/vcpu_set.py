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
class VcpuSet:
    """The vCPUs that hold a reservation.

    :param pid: the process that it applies to.
    :param online: indexes of the vCPUs.
    :param pins: CPU by vCPU, for those that are bound.
    """

    pid: int
    online: frozenset[int]
    pins: Mapping[int, int] = dataclasses.field(default_factory=dict)


class _MoveRequest:
    """A requested move of a reservation, until it is reconciled.

    :param before: the former set; None for all vCPUs.
    :param unpin: unpins the threads that the former set has bound.
    """

    def __init__(
        self, before: VcpuSet | None, unpin: Callable[[], None] | None
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


class VcpuSets:
    """The sets of all instances. Thread-safe.

    The reconciler's thread calls :meth:`of` and :meth:`reconciled`.

    :param changed: makes the reconciler handle an instance.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._vcpu_sets: dict[str, VcpuSet] = {}
        self._requests: dict[str, _MoveRequest] = {}
        self._seen: dict[str, _MoveRequest] = {}
        self._reservations: dict[str, reservation.Reservation | None] = {}

    def restore(self, uuid: str, vcpu_set: VcpuSet) -> None:
        """Restore a recorded set without applying it."""
        with self._lock:
            self._vcpu_sets[uuid] = vcpu_set

    def forget(self, uuid: str) -> None:
        """Forget an instance that does not run any more."""
        with self._lock:
            self._vcpu_sets.pop(uuid, None)

    def retain(self, uuids: Collection[str]) -> None:
        """Forget the reservations of all instances but these."""
        with self._lock:
            for uuid in self._reservations.keys() - set(uuids):
                del self._reservations[uuid]

    def reserved(self, uuid: str) -> reservation.Reservation | None:
        """Return the reservation of each vCPU when all are online."""
        with self._lock:
            return self._reservations.get(uuid)

    def move_reservation(
        self,
        uuid: str,
        vcpu_set: VcpuSet | None,
        timeout_s: float = RECONCILE_TIMEOUT_S,
        *,
        unpin: Callable[[], None] | None = None,
    ) -> None:
        """Move a reservation, and wait until that is done.

        :param vcpu_set: None for all vCPUs.
        :param unpin: unpins the threads that the former set has bound.
            Called by the reconciler's thread right before it checks them
            against the new set; at any other time it would find drift, and
            bind them again.
        :raises errors.Refused: when that failed; it is where it was.
        """
        with self._lock:
            request = _MoveRequest(self._vcpu_sets.get(uuid), unpin)
            self._requests[uuid] = request
            self._put(uuid, vcpu_set)
        self._changed(uuid)
        if not request.done.wait(timeout_s):
            request.unpin_once()
            request.problem = errors.Refused(
                'the reservation was not moved within %g s' % timeout_s,
                errors.Code.THREADS_GONE,
            )
        if request.problem is None:
            return
        with self._lock:
            if self._requests.get(uuid) is request:
                del self._requests[uuid]
                # A move back to all vCPUs stays requested.
                if vcpu_set is not None:
                    self._put(uuid, request.before)
        self._changed(uuid)
        raise errors.Refused(request.problem.detail, request.problem.code)

    def of(
        self, domain: base.Domain, reserved: reservation.Reservation | None
    ) -> tuple[base.Domain, reservation.Reservation | None]:
        """Return the vCPUs that hold a reservation, and the part of each."""
        with self._lock:
            self._reservations[domain.uuid] = reserved
            vcpu_set = self._vcpu_sets.get(domain.uuid)
            request = self._requests.get(domain.uuid)
            if request is not None:
                self._seen[domain.uuid] = request
        if request is not None:
            request.unpin_once()
        if vcpu_set is None or vcpu_set.pid != domain.pid:
            return domain, reserved
        vcpus = tuple(
            dataclasses.replace(
                vcpu,
                bound=True,
                pinned_cpus=frozenset((vcpu_set.pins[vcpu.index],)),
            )
            if vcpu.index in vcpu_set.pins
            else vcpu
            for vcpu in domain.vcpus
            if vcpu.index in vcpu_set.online
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
            request = self._seen.pop(uuid, None)
            if request is None:
                return
            if problem is None and self._requests.get(uuid) is request:
                del self._requests[uuid]
            request.problem = problem
            request.done.set()

    def _put(self, uuid: str, vcpu_set: VcpuSet | None) -> None:
        if vcpu_set is None:
            self._vcpu_sets.pop(uuid, None)
        else:
            self._vcpu_sets[uuid] = vcpu_set

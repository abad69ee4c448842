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

"""Which of an instance's vCPUs hold its reservation.

All of them, unless some were taken offline: then those that are left hold
what all of them were promised. Whoever takes vCPUs says so here and waits;
the reconciler's thread sees to it and says what came of it.
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
PATIENCE_S = 15.0


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """The vCPUs that hold a reservation.

    :param pid: the process; another one is not meant.
    :param online: indexes of the vCPUs.
    :param pins: CPU by vCPU, for those that are bound.
    :param vcpus: how many there were; the others may have been unplugged.
    """

    pid: int
    online: frozenset[int]
    pins: Mapping[int, int] = dataclasses.field(default_factory=dict)
    vcpus: int = 0


class _Ticket:
    def __init__(self, before: Shape | None,
                 loosen: Callable[[], None] | None) -> None:
        self.before = before
        self.done = threading.Event()
        self.problem: errors.VschedError | None = None
        self._lock = threading.Lock()
        self._loosen = loosen

    def let_loose(self) -> None:
        """Once, by whoever comes first."""
        with self._lock:
            loosen, self._loosen = self._loosen, None
            if loosen is None:
                return
            try:
                loosen()
            except Exception:
                # The reservation is refused then, with what is in its way.
                LOG.exception('threads can not be let loose')


class Shapes:
    """Safe from any thread; :meth:`of` and :meth:`settled` are the
    reconciler's.

    :param changed: has the reconciler look at an instance.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._shapes: dict[str, Shape] = {}
        self._tickets: dict[str, _Ticket] = {}
        self._seen: dict[str, _Ticket] = {}
        self._promises: dict[str, reservation.Reservation | None] = {}

    def expect(self, uuid: str, shape: Shape) -> None:
        """This is how it was left; nothing has to be done."""
        with self._lock:
            self._shapes[uuid] = shape

    def forget(self, uuid: str) -> None:
        """The instance is gone."""
        with self._lock:
            self._shapes.pop(uuid, None)

    def keep(self, uuids: Collection[str]) -> None:
        """Forget what was promised to all instances but these."""
        with self._lock:
            for uuid in self._promises.keys() - set(uuids):
                del self._promises[uuid]

    def promise(self, uuid: str) -> reservation.Reservation | None:
        """What each vCPU is promised when all are online."""
        with self._lock:
            return self._promises.get(uuid)

    def reshape(self, uuid: str, shape: Shape | None,
                patience_s: float = PATIENCE_S, *,
                loosen: Callable[[], None] | None = None) -> None:
        """Move a reservation, and wait until that is done.

        :param shape: None for all vCPUs.
        :param loosen: lets threads loose that the shape before has bound.
            Called by the reconciler's thread, right before it looks at them
            with the new shape; done at any other time, it would take them
            for threads that have strayed, and bind them again.
        :raises errors.Refused: when it is not held so; it is where it was.
        """
        with self._lock:
            ticket = _Ticket(self._shapes.get(uuid), loosen)
            self._tickets[uuid] = ticket
            self._put(uuid, shape)
        self._changed(uuid)
        if not ticket.done.wait(patience_s):
            ticket.let_loose()
            ticket.problem = errors.Refused(
                'the reservation was not moved within %g s' % patience_s,
                errors.Code.THREADS_GONE)
        if ticket.problem is None:
            return
        with self._lock:
            if self._tickets.get(uuid) is ticket:
                del self._tickets[uuid]
                # Back to all is what everybody wants, however long it
                # takes.
                if shape is not None:
                    self._put(uuid, ticket.before)
        self._changed(uuid)
        raise errors.Refused(ticket.problem.detail, ticket.problem.code)

    def of(self, domain: base.Domain,
           promise: reservation.Reservation | None,
           ) -> tuple[base.Domain, reservation.Reservation | None]:
        """The vCPUs that hold a promise, and what each of them gets."""
        with self._lock:
            self._promises[domain.uuid] = promise
            shape = self._shapes.get(domain.uuid)
            ticket = self._tickets.get(domain.uuid)
            if ticket is not None:
                self._seen[domain.uuid] = ticket
        if ticket is not None:
            ticket.let_loose()
        if shape is None or shape.pid != domain.pid:
            return domain, promise
        vcpus = tuple(
            dataclasses.replace(vcpu, bound=True, pinned_cpus=frozenset(
                (shape.pins[vcpu.index],)))
            if vcpu.index in shape.pins else vcpu
            for vcpu in domain.vcpus if vcpu.index in shape.online)
        if not vcpus:
            return domain, promise
        return dataclasses.replace(domain, vcpus=vcpus), (
            None if promise is None else balloon.conserved(
                promise, max(len(domain.vcpus), shape.vcpus), len(vcpus)))

    def settled(self, uuid: str,
                problem: errors.VschedError | None) -> None:
        """An instance was dealt with as :meth:`of` said.

        :param problem: why it does not hold its promise so, if it does not.
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

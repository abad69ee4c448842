# SPDX-License-Identifier: Apache-2.0

"""Reservations: the desired ones, the enforced ones, and changes."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import typing as ty

from vsched_client import adapter
from vsched_client import errors
from vsched_client.v1 import base
from vsched_client import waiting

#: The period of a new reservation that names none.
DEFAULT_PERIOD_US = 20_000

#: What a list may be sorted by.
SORT_KEYS = ('instance_uuid', 'host', 'state', 'bandwidth_mcpu')

PENDING, APPLIED, DEGRADED = 'pending', 'applied', 'degraded'
REFUSED, RELEASED = 'refused', 'released'


class Enforced(ty.TypedDict):
    """What the kernel was last seen to hold."""

    backend: str
    runtime_us: int | None
    period_us: int | None
    bandwidth_mcpu: int | None


class Io(ty.TypedDict):
    """The reservations of the host's threads for the I/O of an instance."""

    charging: str | None
    threads: int | None
    runtime_us: int | None
    period_us: int | None
    guest_runtime_us: int | None
    charged_mcpu: int | None
    debt_us: int | None
    code: str | None
    detail: str | None


class Communication(ty.TypedDict):
    """How finely runtime and period are divided."""

    granularity: int | None
    runtime_ns: int | None
    period_ns: int | None
    code: str | None
    detail: str | None


class Reservation(ty.TypedDict, total=False):
    """The reservation of one instance."""

    instance_uuid: str
    instance_name: str | None
    host: str | None
    server_name: str | None
    project_id: str | None
    flavor_name: str | None
    present: bool
    vcpus: int
    source: str
    state: str
    generation: int
    runtime_us: int | None
    period_us: int | None
    mode: str | None
    backend: str | None
    bandwidth_mcpu: int | None
    io_charging: str | None
    max_alloc_error_pct: float | None
    balloon: str | None
    min_vcpus: int | None
    weight: int | None
    comm_aware: bool | None
    override: base.Author | None
    enforced: Enforced | None
    io: Io | None
    communication: Communication | None
    since: str | None
    attested_at: str | None
    code: str | None
    detail: str | None
    figures: dict[str, ty.Any]


class Reservations(base.Noun):
    """``/v1/reservations``."""

    def list(
        self,
        host: str | None = None,
        states: Sequence[str] = (),
        sources: Sequence[str] = (),
        backend: str | None = None,
        limit: int | None = None,
        project_id: str | None = None,
        server_name: str | None = None,
        flavor_name: str | None = None,
        instance_uuids: Sequence[str] = (),
        sort_key: str | None = None,
        descending: bool = False,
    ) -> Iterator[Reservation]:
        """Iterate over reservations in the order of their instances.

        :param states: any of these; none for all.
        :param sources: any of these; none for all.
        :param backend: only those that it enforces now.
        :param limit: the most reservations to return; None for all.
        :param project_id: only those of its servers.
        :param server_name: only those of servers that Nova knows by it.
        :param flavor_name: only those of servers of this flavor.
        :param instance_uuids: only those of these instances; none for all.
        :param sort_key: one of :data:`SORT_KEYS`; None for the first one.
        """
        return ty.cast(
            Iterator[Reservation],
            self._api.pages(
                'reservations',
                'reservations',
                query={
                    'host': host,
                    'state': base.repeated(states),
                    'source': base.repeated(sources),
                    'backend': backend,
                    'project_id': project_id,
                    'server_name': server_name,
                    'flavor_name': flavor_name,
                    'instance_uuid': base.repeated(instance_uuids),
                    **base.sorted_by(sort_key, descending),
                },
                limit=limit,
            ),
        )

    def get(self, instance_uuid: str) -> Reservation:
        """Return the reservation of an instance."""
        return self._one('GET', 'reservations', instance_uuid)

    def create(
        self, instance_uuid: str, runtime_us: int, **fields: ty.Any
    ) -> Reservation:
        """Give a reservation to an instance that has none.

        :param fields: ``period_us``, ``mode`` and others of the API.
        :returns: it is pending until the agent has answered.
        """
        return self._one(
            'POST',
            'reservations',
            body={
                'instance_uuid': instance_uuid,
                'runtime_us': runtime_us,
                **fields,
            },
        )

    def update(
        self,
        instance_uuid: str,
        generation: int | None = None,
        **fields: ty.Any,
    ) -> Reservation:
        """Change the reservation of a running instance.

        :param generation: that the change is based on; None changes whatever
            is there.
        :param fields: what changes; None for an extra spec gives it back to
            the flavor.
        :raises errors.Outdated: when there is another generation.
        """
        body = dict(fields)
        if generation is not None:
            body['generation'] = generation
        return self._one('PATCH', 'reservations', instance_uuid, body=body)

    def delete(
        self, instance_uuid: str, generation: int | None = None
    ) -> Reservation | None:
        """Remove the override, so that the flavor's reservation holds.

        :param generation: as for :meth:`update`.
        :returns: None when nothing is left.
        """
        answer = self._api.call(
            'DELETE',
            'reservations',
            instance_uuid,
            query={'generation': generation},
        )
        return ty.cast(Reservation | None, answer.get('reservation'))

    def wait(
        self,
        instance_uuid: str,
        generation: int,
        timeout_s: float,
        on_read: Callable[[Reservation | None], None] | None = None,
    ) -> Reservation | None:
        """Wait until the agent has answered a change.

        :param generation: of the override; 0 after it was removed.
        :param on_read: called with each state that is read.
        :returns: the reservation; None when nothing is left of it.
        :raises errors.TimedOut: when the agent has not answered.
        :raises errors.Superseded: when another change came after it.
        """

        def read() -> Reservation | None:
            try:
                found = self.get(instance_uuid)
            except errors.NotFound:
                if generation:
                    raise
                return None
            if found.get('generation') != generation:
                raise errors.Superseded(
                    'another request changed the reservation of instance %s '
                    'to generation %s while generation %d was waited for'
                    % (instance_uuid, found.get('generation'), generation),
                    found,
                )
            return found

        return waiting.poll(
            read,
            lambda one: one is None or one.get('state') != PENDING,
            timeout_s,
            'the agent has not answered the change of instance %s'
            % instance_uuid,
            on_read,
        )

    def _one(
        self, method: str, *segments: str, body: adapter.Object | None = None
    ) -> Reservation:
        return ty.cast(
            Reservation,
            self._api.one('reservation', method, *segments, body=body),
        )

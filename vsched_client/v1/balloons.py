# SPDX-License-Identifier: Apache-2.0

"""Balloons: how many vCPUs instances use, orders, and the history."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import typing as ty

from vsched_client import adapter
from vsched_client import errors
from vsched_client.v1 import base
from vsched_client import waiting

PENDING, APPLIED, REFUSED = 'pending', 'applied', 'refused'


class Order(ty.TypedDict):
    """What an operator ordered, and what became of it."""

    state: str
    generation: int
    target_vcpus: int | None
    frozen: bool
    code: str | None
    detail: str | None
    set_by: base.Author | None


class Balloon(ty.TypedDict, total=False):
    """The balloon status of an instance."""

    instance_uuid: str
    instance_name: str | None
    server_name: str | None
    project_id: str | None
    flavor_name: str | None
    host: str | None
    present: bool
    state: str | None
    auto: bool | None
    dry_run: bool | None
    pinned: bool | None
    guest_answers: bool | None
    vcpus: int | None
    online_vcpus: int | None
    min_vcpus: int | None
    floor_vcpus: int | None
    cause: str | None
    failures: int | None
    cpus: list[int]
    since: str | None
    not_before: str | None
    order: Order | None


class Change(ty.TypedDict, total=False):
    """A balloon that is or was."""

    uuid: str
    host: str
    instance_uuid: str
    server_name: str | None
    project_id: str | None
    flavor_name: str | None
    started_at: str
    ended_at: str | None
    duration_s: float | None
    vcpus: int
    before_vcpus: int
    online_vcpus: int
    manual: bool
    cause: str
    took_ms: int | None
    outcome: str | None
    detail: str | None


class Balloons(base.Noun):
    """``/v1/balloons``."""

    def list(
        self,
        host: str | None = None,
        states: Sequence[str] = (),
        limit: int | None = None,
        project_id: str | None = None,
        flavor_name: str | None = None,
        instance_uuids: Sequence[str] = (),
        server_name: str | None = None,
    ) -> Iterator[Balloon]:
        """Iterate over instances in the order of their UUIDs.

        :param instance_uuids: only these instances; none for all.
        :param states: any of these; none for all.
        :param project_id: only servers of this project.
        :param server_name: only servers that Nova knows by it.
        :param flavor_name: only servers of this flavor.
        :param limit: the most instances to return; None for all.
        """
        return ty.cast(
            Iterator[Balloon],
            self._api.pages(
                'balloons',
                'balloons',
                query={
                    'host': host,
                    'state': base.repeated(states),
                    'project_id': project_id,
                    'server_name': server_name,
                    'flavor_name': flavor_name,
                    'instance_uuid': base.repeated(instance_uuids),
                },
                limit=limit,
            ),
        )

    def history(
        self,
        host: str | None = None,
        instance_uuids: Sequence[str] = (),
        outcomes: Sequence[str] = (),
        start: str | None = None,
        end: str | None = None,
        limit: int | None = None,
        project_id: str | None = None,
        server_name: str | None = None,
        flavor_name: str | None = None,
    ) -> Iterator[Change]:
        """Iterate over balloons that are or were, newest first.

        :param instance_uuids: only of these instances; none for all.
        :param outcomes: any of these; none for all.
        :param start: only those that began at this time or later, ISO 8601.
        :param end: only those that began before.
        :param limit: the most balloons to return; None for all.
        :param project_id: only of servers of this project.
        :param server_name: only of servers that Nova knows by it.
        :param flavor_name: only of servers of this flavor.
        """
        return ty.cast(
            Iterator[Change],
            self._api.pages(
                'history',
                'balloons',
                'history',
                query={
                    'host': host,
                    'instance_uuid': base.repeated(instance_uuids),
                    'project_id': project_id,
                    'server_name': server_name,
                    'flavor_name': flavor_name,
                    'outcome': base.repeated(outcomes),
                    'start': start,
                    'end': end,
                },
                limit=limit,
            ),
        )

    def get(self, instance_uuid: str) -> Balloon:
        """Return the balloon status of an instance."""
        return self._one('GET', 'balloons', instance_uuid)

    def create(
        self,
        instance_uuid: str,
        target_vcpus: int,
        frozen: bool = False,
        generation: int | None = None,
    ) -> Balloon:
        """Order how many vCPUs an instance uses.

        :param generation: of the order that this one is based on, 0 for
            none; None replaces whatever is there.
        :raises errors.Outdated: when there is another generation.
        """
        body: adapter.Object = {
            'instance_uuid': instance_uuid,
            'target_vcpus': target_vcpus,
            'frozen': frozen,
        }
        if generation is not None:
            body['generation'] = generation
        return self._one('POST', 'balloons', body=body)

    def update(
        self,
        instance_uuid: str,
        generation: int | None = None,
        **fields: ty.Any,
    ) -> Balloon:
        """Change the order for an instance.

        :param generation: as for :meth:`create`.
        :param fields: ``target_vcpus``, ``frozen``; what is not given stays.
        """
        body = dict(fields)
        if generation is not None:
            body['generation'] = generation
        return self._one('PATCH', 'balloons', instance_uuid, body=body)

    def delete(
        self, instance_uuid: str, generation: int | None = None
    ) -> Balloon:
        """Leave the vCPUs of an instance to its agent again.

        :param generation: as for :meth:`create`.
        """
        return ty.cast(
            Balloon,
            self._api.one(
                'balloon',
                'DELETE',
                'balloons',
                instance_uuid,
                query={'generation': generation},
            ),
        )

    def wait(
        self,
        instance_uuid: str,
        generation: int,
        timeout_s: float,
        on_read: Callable[[Balloon], None] | None = None,
    ) -> Balloon:
        """Wait until the agent has answered an order.

        :param generation: of the order; 0 after it was withdrawn.
        :param on_read: called with each state that is read.
        :raises errors.TimedOut: when the agent has not answered.
        :raises errors.Superseded: when another order came after it.
        """

        def read() -> Balloon:
            found = self.get(instance_uuid)
            order = found.get('order')
            current = order['generation'] if order else 0
            if current != generation:
                raise errors.Superseded(
                    'another request changed the order for instance %s to '
                    'generation %d while generation %d was waited for'
                    % (instance_uuid, current, generation),
                    found,
                )
            return found

        return waiting.poll(
            read,
            lambda one: not pending(one),
            timeout_s,
            'the agent has not answered the order for instance %s'
            % instance_uuid,
            on_read,
        )

    def _one(
        self, method: str, *segments: str, body: adapter.Object | None = None
    ) -> Balloon:
        return ty.cast(
            Balloon, self._api.one('balloon', method, *segments, body=body)
        )


def pending(one: Balloon) -> bool:
    """Return whether the agent has still to answer an order."""
    order = one.get('order')
    return order is not None and order['state'] == PENDING

# SPDX-License-Identifier: Apache-2.0

"""Instances that agents report."""

from collections.abc import Iterator
from collections.abc import Sequence
import typing as ty

from vsched_client.v1 import base

#: What a list may be sorted by.
SORT_KEYS = ('instance_uuid', 'host', 'server_name', 'vcpus')


class Instance(ty.TypedDict, total=False):
    """An instance."""

    instance_uuid: str
    name: str | None
    server_name: str | None
    project_id: str | None
    flavor_name: str | None
    host: str | None
    vcpus: int
    present: bool


class Instances(base.Noun):
    """``/v1/instances``."""

    def list(
        self,
        host: str | None = None,
        present: bool | None = None,
        limit: int | None = None,
        project_id: str | None = None,
        server_name: str | None = None,
        flavor_name: str | None = None,
        instance_uuids: Sequence[str] = (),
        states: Sequence[str] = (),
        sort_key: str | None = None,
        descending: bool = False,
    ) -> Iterator[Instance]:
        """Iterate over instances.

        :param present: only those that a host lists now, or only others.
        :param limit: the most instances to return; None for all.
        :param project_id: only servers of this project.
        :param server_name: only servers that Nova knows by it.
        :param flavor_name: only servers of this flavor.
        :param instance_uuids: only these instances; none for all.
        :param states: only those with a reservation in one of these.
        :param sort_key: one of :data:`SORT_KEYS`; None for the first one.
        """
        return ty.cast(
            Iterator[Instance],
            self._api.pages(
                'instances',
                'instances',
                query={
                    'host': host,
                    'instance_uuid': base.repeated(instance_uuids),
                    'present': present,
                    'project_id': project_id,
                    'server_name': server_name,
                    'flavor_name': flavor_name,
                    'state': base.repeated(states),
                    **base.sorted_by(sort_key, descending),
                },
                limit=limit,
            ),
        )

    def get(self, instance_uuid: str) -> Instance:
        """Return one instance."""
        return ty.cast(
            Instance,
            self._api.one('instance', 'GET', 'instances', instance_uuid),
        )

# SPDX-License-Identifier: Apache-2.0

"""Instances that agents report."""

from collections.abc import Iterator
import typing as ty

from vsched_client.v1 import base


class Instance(ty.TypedDict, total=False):
    """An instance."""

    instance_uuid: str
    name: str
    host: str
    vcpus: int
    present: bool


class Instances(base.Noun):
    """``/v1/instances``."""

    def list(
        self,
        host: str | None = None,
        present: bool | None = None,
        limit: int | None = None,
    ) -> Iterator[Instance]:
        """Iterate over instances in the order of their UUIDs.

        :param present: only those that a host lists now, or only others.
        :param limit: the most instances to return; None for all.
        """
        return ty.cast(
            Iterator[Instance],
            self._api.pages(
                'instances',
                'instances',
                query={'host': host, 'present': present},
                limit=limit,
            ),
        )

    def get(self, instance_uuid: str) -> Instance:
        """Return one instance."""
        return ty.cast(
            Instance,
            self._api.one('instance', 'GET', 'instances', instance_uuid),
        )

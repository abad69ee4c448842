# SPDX-License-Identifier: Apache-2.0

"""Read the overrides of a host for its agent."""

import typing as ty

from vsched_api.db.queries import balloons
from vsched_api.db.queries import hosts
from vsched_api.db.queries import instances
from vsched_api.db.queries import overrides as queries
from vsched_api.db import session as db
from vsched_lib.contract import balloons as contract
from vsched_lib.contract import messages


def of_host(database: db.Database, host: str) -> messages.Overrides:
    """Return the overrides and balloon orders of the instances on a host.

    Stopped instances are included. During a migration both hosts list the
    instance, and its override applies on both.

    :returns: generation 0 and no overrides for an unknown host.
    """

    def work(session: ty.Any) -> messages.Overrides:
        row = hosts.by_name(session, host)
        if row is None:
            return messages.Overrides(generation=0)
        # The generation is read first: if an override is set between the two
        # reads, the agent gets it with an older number and fetches again.
        generation, host_id = row.overrides_generation, row.id
        return messages.Overrides(
            generation=generation,
            overrides=tuple(
                messages.Override(
                    instance_uuid=row.instance_uuid,
                    generation=row.generation,
                    runtime_us=row.runtime_us,
                    period_us=row.period_us,
                    mode=row.mode,
                    backend=row.backend,
                    specs=row.specs or {},
                    request_id=row.request_id,
                )
                for row in queries.of_host(session, host_id)
            ),
            balloons=tuple(
                contract.BalloonOrder(
                    instance_uuid=row.instance_uuid,
                    generation=row.generation,
                    target_vcpus=row.target_vcpus,
                    frozen=row.frozen,
                )
                for row in balloons.orders_of_host(session, host_id)
            ),
        )

    return database.read(work)


def mark_hosts(
    session: ty.Any, instance_uuid: str, generation: int
) -> list[str]:
    """Give the hosts of an instance a generation, inside a transaction.

    Their agents fetch the overrides again.

    :param generation: of the instance's change.
    :returns: the hosts that list the instance now, for the announcement.
    """
    rows = instances.of_uuid(session, instance_uuid)
    # Includes hosts that the instance has left: if it returns to one, the
    # generation must be above the last one that this host received.
    hosts.set_overrides_generation(
        session, {row.host_id for row in rows}, generation
    )
    return sorted(row.host.name for row in rows if row.present)

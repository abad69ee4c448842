# SPDX-License-Identifier: Apache-2.0

"""What operators want instead of what flavors say, as agents ask for it."""

import typing as ty

from vsched_api.db.queries import balloons
from vsched_api.db.queries import hosts
from vsched_api.db.queries import instances
from vsched_api.db.queries import overrides as queries
from vsched_api.db import session as db
from vsched_lib.contract import balloons as contract
from vsched_lib.contract import messages


def of_host(database: db.Database, host: str) -> messages.Overrides:
    """Every override of the instances on a host, stopped ones included.

    And what operators want of ballooning, which goes the same way.

    While an instance migrates both hosts list it, and its override holds on
    both.

    :returns: generation 0 and none for a host never heard of.
    """

    def work(session: ty.Any) -> messages.Overrides:
        row = hosts.by_name(session, host)
        if row is None:
            return messages.Overrides(generation=0)
        # The generation is read first: should an override be set between
        # the two reads, the agent gets it with an older number and merely
        # asks again.
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
    """Have the agents concerned ask anew, inside a transaction.

    :param generation: of what changed for the instance.
    :returns: the hosts that list it now, for the announcement.
    """
    rows = instances.of_uuid(session, instance_uuid)
    # Hosts that it has left too: should it come back to one, the number of
    # its override must be above whatever that host answered before.
    hosts.set_overrides_generation(
        session, {row.host_id for row in rows}, generation
    )
    return sorted(row.host.name for row in rows if row.present)

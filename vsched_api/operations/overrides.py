# SPDX-License-Identifier: Apache-2.0

"""Overrides: what operators set over flavors and over agents' decisions.

There are two kinds, each a noun of the API: of a reservation, and of the
number of vCPUs that an instance uses (``operations.balloons``). Both are
stored with a generation, for which every host that lists the instance is
marked, in one transaction; the agent is notified by a cast and, should that
get lost, by the reply to its next report.
"""

from collections.abc import Callable
import dataclasses
import typing as ty
import uuid

from vsched_api.db import models
from vsched_api.db.queries import balloons
from vsched_api.db.queries import counters
from vsched_api.db.queries import events
from vsched_api.db.queries import hosts
from vsched_api.db.queries import instances as instance_queries
from vsched_api.db.queries import overrides as queries
from vsched_api.db import session as db
from vsched_api.operations import announcements
from vsched_api.operations import authors
from vsched_api.operations import errors
from vsched_api.operations import instances
from vsched_lib.contract import balloons as contract
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import messages


class Row(ty.Protocol):
    """A row of an instance, joined with one kind of override."""

    @property
    def instance(self) -> models.Instance:
        """The instance."""

    @property
    def host(self) -> models.Host:
        """Its host."""


R = ty.TypeVar('R', bound=Row)


@dataclasses.dataclass(frozen=True, slots=True)
class Kind(ty.Generic[R]):
    """One kind of override.

    :param words: name it in errors; the instance follows.
    :param find: returns the row of an instance, None when it is not known.
    :param override: returns the override in that row, None without one.
    """

    words: str
    find: Callable[[ty.Any, str], R | None]
    override: Callable[[R], ty.Any]

    def known(self, session: ty.Any, instance_uuid: str) -> R:
        """Return the row of an instance.

        :raises errors.NotFound: when no agent reported it.
        """
        row = self.find(session, instance_uuid)
        if row is None:
            raise instances.unknown(instance_uuid)
        return row

    def expect(self, row: R, expected: int | None) -> None:
        """Check that a request is based on the newest change.

        :param expected: the generation that it is based on; None when it
            does not say.
        :raises errors.Outdated: when there is another generation.
        """
        override = self.override(row)
        generation = 0 if override is None else override.generation
        if expected is not None and expected != generation:
            raise errors.Outdated(
                'generation: %s instance %s has generation %d, not %d: '
                'somebody else changed it; read it again'
                % (self.words, row.instance.uuid, generation, expected)
            )


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """A request to change the override of one instance.

    :param now: seconds since the epoch.
    :param expected: the generation that it is based on; None to change
        whatever is there.
    """

    instance_uuid: str
    now: float
    author: authors.Author = authors.NOBODY
    expected: int | None = None


def store(
    database: db.Database,
    announcer: announcements.Announcer,
    kind: Kind[R],
    change: Change,
    make: Callable[[ty.Any, R, int], tuple[contract_errors.Code, str]],
) -> tuple[R, int]:
    """Make a change in one transaction, and notify the agents concerned.

    :param make: makes the change, given the session, the row before it and
        the generation of the change; returns code and detail of the event to
        store with it. It may be called more than once.
    :returns: the row after the change, and its generation.
    :raises errors.NotFound: when no agent reported the instance.
    :raises errors.Outdated: when the change is based on another generation.
    """

    def work(session: ty.Any) -> tuple[R, int, list[str]]:
        generation = counters.next_override_generation(session)
        row = kind.known(session, change.instance_uuid)
        kind.expect(row, change.expected)
        code, detail = make(session, row, generation)
        _add_event(session, row.host.id, change, code, detail, generation)
        names = _mark_hosts(session, change.instance_uuid, generation)
        session.expire_all()
        return kind.known(session, change.instance_uuid), generation, names

    row, generation, names = database.write(work)
    announcer.overrides_changed(names, generation)
    return row, generation


def of_host(database: db.Database, host: str) -> collector_replies.Overrides:
    """Return the overrides and balloon orders of the instances on a host.

    Stopped instances are included. During a migration both hosts list the
    instance, and its override applies on both.

    :returns: generation 0 and no overrides for an unknown host.
    """

    def work(session: ty.Any) -> collector_replies.Overrides:
        row = hosts.by_name(session, host)
        if row is None:
            return collector_replies.Overrides(generation=0)
        # The generation is read first: if an override is set between the two
        # reads, the agent gets it with an older number and fetches again.
        generation, host_id = row.overrides_generation, row.id
        return collector_replies.Overrides(
            generation=generation,
            overrides=tuple(
                collector_replies.Override(
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


def _mark_hosts(
    session: ty.Any, instance_uuid: str, generation: int
) -> list[str]:
    """Give the hosts of an instance a generation, inside a transaction.

    Their agents fetch the overrides again.

    :param generation: of the instance's change.
    :returns: the hosts that list the instance now, for the announcement.
    """
    rows = instance_queries.of_uuid(session, instance_uuid)
    # Includes hosts that the instance has left: if it returns to one, the
    # generation must be above the last one that this host received.
    hosts.set_overrides_generation(
        session, {row.host_id for row in rows}, generation
    )
    return sorted(row.host.name for row in rows if row.present)


def _add_event(
    session: ty.Any,
    host_id: int,
    change: Change,
    code: contract_errors.Code,
    detail: str,
    generation: int,
) -> None:
    events.add(
        session,
        [
            {
                'host_id': host_id,
                'uuid': str(uuid.uuid4()),
                'at': change.now,
                'code': code.value,
                'severity': messages.Severity.INFO.value,
                'instance_uuid': change.instance_uuid,
                'detail': detail,
                'figures': {
                    'generation': generation,
                    **authors.columns(change.author),
                },
            }
        ],
    )

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

"""What is known of hosts."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import typing as ty

from oslo_log import log as logging

from vsched_api.db import models
from vsched_api.db.queries import hosts as queries
from vsched_api.db.queries import instances as instance_queries
from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import messages
from vsched_lib.contract import wire

LOG = logging.getLogger(__name__)


class State(enum.StrEnum):
    """Whether the agent of a host reports."""

    UP = 'up'
    DOWN = 'down'


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A host as its agent tells of it.

    :param last_report_at: when its last report came, by the collector's
        clock, in seconds since the epoch; None before the first.
    :param info: None until the agent has told.
    """

    name: str
    state: State
    last_report_at: float | None
    last_batch: int
    overrides_generation: int
    instances: int
    info: messages.HostInfo | None


def page(database: db.Database, limit: int, marker: str | None,
         now: float, down_after_s: float) -> list[Host]:
    """Hosts in the order of their names, after ``marker``.

    :param down_after_s: a host counts as down when its last report is older.
    """
    def work(session: ty.Any) -> list[Host]:
        counts = instance_queries.count_by_host(session)
        return [_host(row, counts, now, down_after_s)
                for row in queries.page(session, limit, marker)]

    return database.read(work)


def get(database: db.Database, name: str, now: float,
        down_after_s: float) -> Host:
    """One host.

    :raises errors.NotFound: when no agent ever reported from it.
    """
    def work(session: ty.Any) -> Host:
        row = queries.by_name(session, name)
        if row is None:
            raise errors.NotFound(
                'no agent reported from a host named %s' % name,
                contract_errors.Code.HOST_NOT_FOUND)
        return _host(row, instance_queries.count_by_host(session), now,
                     down_after_s)

    return database.read(work)


def known_info(row: models.Host) -> messages.HostInfo | None:
    """What a row holds of its host; None when it is nothing we can read."""
    if row.info is None:
        return None
    try:
        return messages.HostInfo.from_dict(row.info)
    except wire.MalformedMessage as problem:
        # Stored by a release that knew less; the next full report heals it.
        LOG.warning('Host %s: %s', row.name, problem)
        return None


def every(session: ty.Any, now: float,
          down_after_s: float) -> Sequence[Host]:
    """All hosts, inside a transaction."""
    counts = instance_queries.count_by_host(session)
    return [_host(row, counts, now, down_after_s)
            for row in queries.every(session)]


def _host(row: models.Host, counts: Mapping[int, int], now: float,
          down_after_s: float) -> Host:
    up = (row.received_at is not None and
          now - row.received_at <= down_after_s)
    return Host(
        name=row.name, state=State.UP if up else State.DOWN,
        last_report_at=row.received_at, last_batch=row.last_batch,
        overrides_generation=row.overrides_generation,
        instances=counts.get(row.id, 0), info=known_info(row))

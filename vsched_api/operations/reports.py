# SPDX-License-Identifier: Apache-2.0

"""Store agents' reports, each batch exactly once.

A batch is one transaction. It locks the host's row first: of two collectors
with the same batch, one waits for the lock and then finds the batch stored.

**An instance that moves.** The list of each host is stored separately. During
a migration both hosts list the instance. It counts as being on the host that
began to list it last, and if that host drops it, as after a failed migration,
on the other one. Neither the order in which two agents report nor a repeated
list matters. When a host drops an instance, its reservation there is released.
An override belongs to the instance: it stays and applies on every host that
lists the instance. Each arrival and departure of such an instance gives the
host's overrides a new generation, so that its agent fetches them.

**A batch that cannot be stored.** An agent repeats a batch until it gets a
reply. A batch that can never be stored would block all that follow. It gets
the reply of a stored batch, an event lists what was lost, and the reply
requests a full report. When the database is unavailable there is no reply, and
the agent keeps the batch.
"""

from collections.abc import Callable
import contextlib
import dataclasses
import functools
import time
import typing as ty

from oslo_log import log as logging

from vsched_api.db import errors as db_errors
from vsched_api.db.queries import events
from vsched_api.db.queries import hosts
from vsched_api.db import session as db
from vsched_api.operations import gathering
from vsched_api.operations import inspection
from vsched_api.operations import notices
from vsched_api.operations import numbering
from vsched_api.operations import report_groups
from vsched_api.operations import sample_batches
from vsched_api.operations import shared_rows
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import wire

LOG = logging.getLogger(__name__)

_SECONDS_PER_DAY = 86_400


@dataclasses.dataclass(slots=True)
class Outcome:
    """What became of a batch.

    :ivar reply: the answer to its agent.
    :ivar invalid: whether the batch can never be stored.
    """

    reply: collector_replies.ReportReply | None = None
    invalid: bool = False


class Watch(ty.Protocol):
    """Counts batches."""

    def batch(
        self, report: messages.Report
    ) -> contextlib.AbstractContextManager[Outcome]:
        """Return a context for the time in which a batch is stored."""


class NoWatch:
    """Counts nothing."""

    def batch(
        self, report: messages.Report
    ) -> contextlib.AbstractContextManager[Outcome]:
        """Return a context without effect."""
        return contextlib.nullcontext(Outcome())


class Storage:
    """Stores the reports of one process. Safe from any thread.

    :param limits: what reports are held against.
    :param now: the collector's clock, in seconds since the epoch.
    :param watch: counts batches; None for no counting.
    """

    def __init__(
        self,
        database: db.Database,
        limits: report_groups.Limits = report_groups.DEFAULT_LIMITS,
        now: Callable[[], float] = time.time,
        watch: Watch | None = None,
    ) -> None:
        self._database = database
        self._limits = limits
        self._now = now
        self._watch = watch or NoWatch()
        self._samples = gathering.Gathering(
            database,
            functools.partial(
                sample_batches.store, warn_s=limits.skew_warning_s
            ),
            sample_batches.MAX_BATCHES,
        )
        self._others = gathering.Gathering(
            database,
            functools.partial(report_groups.store_many, limits=limits),
            report_groups.MAX_BATCHES,
        )

    def store(self, report: messages.Report) -> collector_replies.ReportReply:
        """Store a batch, unless it is stored already.

        :raises vsched_api.db.errors.DatabaseUnavailable: when it is not known
            to be stored.
        """
        now = self._now()
        with self._watch.batch(report) as outcome:
            try:
                batch = inspection.rows(report, now)
                queue = self._samples if batch.plain else self._others
                reply = queue.store(batch, now) or self._store_alone(
                    batch, now
                )
            except (
                wire.MalformedMessage,
                db_errors.UnstorableValue,
            ) as problem:
                outcome.invalid = True
                reply = reject(self._database, report.to_dict(), problem, now)
            outcome.reply = reply
        LOG.debug(
            'Host %(host)s: batch %(batch)d %(what)s',
            {
                'host': report.host,
                'batch': report.batch,
                'what': 'repeated' if reply.duplicate else 'stored',
            },
        )
        return reply

    def _store_alone(
        self, batch: inspection.Batch, now: float
    ) -> collector_replies.ReportReply:
        if not batch.plain:
            # Wait for the host's row without the counters: a transaction that
            # holds them blocks the reports of all other hosts.
            self._database.write(
                lambda session: hosts.lock(session, batch.host)
            )
        return self._database.write(
            lambda session: report_groups.store_one(
                session, batch, now, self._limits
            )
        )


def reject(
    database: db.Database, raw: object, problem: Exception, now: float
) -> collector_replies.ReportReply:
    """Reply to a batch that can never be stored, and store an event.

    :param raw: the report as received.
    :raises wire.MalformedMessage: when the host or the number of the batch
        cannot be read: there is no reply then.
    :raises vsched_api.db.errors.DatabaseUnavailable: when the event is not
        known to be stored.
    """
    try:
        origin = messages.ReportOrigin.from_dict(raw)
    except wire.MalformedMessage:
        raise wire.MalformedMessage(str(problem)) from None
    host, number = origin.host, origin.batch
    detail = wire.clean('Batch %d was not stored: %s' % (number, problem))
    LOG.error('Host %s: %s', host, detail)
    # One event a day for each field: a full report may have the same problem
    # with another value.
    field = str(problem).partition(':')[0]
    event = {
        'uuid': notices.event_uuid(host, field, int(now // _SECONDS_PER_DAY)),
        'at': now,
        'code': errors.Code.REPORT_REJECTED.value,
        'severity': messages.Severity.ERROR.value,
        'detail': detail,
        'instance_uuid': None,
        'figures': {'batch': number},
    }

    def work(session: ty.Any) -> collector_replies.ReportReply:
        row = hosts.lock(session, host) or hosts.add(session, host)
        shared = shared_rows.SharedRows()
        place = report_groups.place(
            row, origin.epoch, number, origin.after, shared, now
        )
        shared.store(session)
        reply = numbering.reply(row, origin.epoch, place)
        if not place.new:
            return reply
        row.received_at = now
        events.add(session, [{'host_id': row.id, **event}])
        return dataclasses.replace(reply, resync=True)

    return database.write(work)

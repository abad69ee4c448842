# SPDX-License-Identifier: Apache-2.0

"""Store batches that carry only samples, as most do, in few statements."""

from collections.abc import Sequence
import typing as ty

from vsched_api.db.queries import host_time
from vsched_api.db.queries import hosts
from vsched_api.db.queries import usage
from vsched_api.operations import clocks
from vsched_api.operations import gathering
from vsched_api.operations import numbering
from vsched_lib.contract import collector_replies

#: How many batches one transaction stores at most. More make it longer, and
#: hardly cheaper.
MAX_BATCHES = 32


def store(
    session: ty.Any, entries: Sequence[gathering.Entry], warn_s: float
) -> list[collector_replies.ReportReply | None]:
    """Store batches that carry only samples.

    :param entries: each of another host.
    :param warn_s: the clock difference from which on an event is stored.
    :returns: None for each whose host is new or busy, or whose storage
        changes more columns of the host's row than ``hosts.advance()``.
    """
    found = hosts.lock_many(session, {one.batch.host for one in entries})
    replies: list[collector_replies.ReportReply | None] = []
    samples, times, stored = {}, {}, {}
    for entry in entries:
        batch, host = entry.batch, found.get(entry.batch.host)
        if host is None:
            replies.append(None)
            continue
        if clocks.worth_an_event(host.clock_skew_s, batch.skew_s, warn_s):
            replies.append(None)
            continue
        place = numbering.of_current(host, batch.epoch, batch.number)
        if place is None or (place.number != batch.number + host.batch_offset):
            # It changes more columns of the host's row than hosts.advance().
            replies.append(None)
            continue
        if place.new:
            stored[host.id] = place.number, batch.at, batch.skew_s
            samples[host.id, place.number] = batch.usage
            times[host.id, place.number] = batch.host_time
        replies.append(numbering.reply(host, batch.epoch, place))
    if stored:
        usage.add(session, samples)
        host_time.add(session, times)
        hosts.advance(session, stored, max(one.now for one in entries))
    return replies

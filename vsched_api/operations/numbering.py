# SPDX-License-Identifier: Apache-2.0

"""Number batches: detect duplicates, gaps and replaced epochs.

Agents number their batches in ascending order within an *epoch*: one run of
one agent, identified by 128 random bits. The collector has its own ascending
number per host, which never restarts: ``last_batch``. The difference between
the two is the host's ``batch_offset``, 0 until an agent restarts its numbers.
Neither side needs a clock, and the sums of usage, which follow the stored
numbers, count no batch twice.

A batch of an epoch that is new for the host *begins* that epoch, if the report
names the stored batch that it follows (``Report.after``). The agent gets that
number in the collector's last reply only. Stored numbers never repeat, so that
a recorded report cannot begin its epoch again: the host is past that number.

An epoch ends when another one begins. An agent that still reports in the old
epoch is notified in the reply, and begins a new one. This happens when a
journal was restored from a copy, and when two agents report as one host. Both
cases store an event.

Reports without an epoch come from agents of an earlier release. Their numbers
are stored unchanged, as in that release.
"""

from collections.abc import Sequence
import dataclasses
import typing as ty

from vsched_api.db.queries import batches
from vsched_api.db.queries import hosts
from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors as contract_errors

#: How many replaced epochs of a host are stored, the newest ones.
MAX_REPLACED = 16

#: The largest gap between two batches that is stored. A larger one is closed:
#: stored numbers must not overflow.
MAX_GAP = 2**32

#: The largest stored number that leaves enough numbers above it.
MAX_STORED = 2**62

Replaced = Sequence[Sequence[ty.Any]]


class Host(ty.Protocol):
    """The batch numbers of a host, and the contents of the next reply."""

    @property
    def last_batch(self) -> ty.Any:
        """The newest batch, in the collector's numbers."""

    @property
    def batch_offset(self) -> ty.Any:
        """The difference between ``last_batch`` and the agent's number."""

    @property
    def epoch(self) -> ty.Any:
        """The current epoch; None before the first."""

    @property
    def known(self) -> ty.Any:
        """Whether the host has reported its info and its instances."""

    @property
    def overrides_generation(self) -> ty.Any:
        """The generation of the host's overrides."""

    @property
    def jobs_generation(self) -> ty.Any:
        """The generation of the host's jobs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """The position of a batch in the stored sequence.

    :param state: state of its epoch; nothing is stored unless it is current.
    :param number: the stored number.
    :param duplicate: whether the batch is stored already.
    :param missed: whether batches before it were not stored.
    :param begins: whether it begins its epoch.
    :param anew: whether the agent restarted its numbers, as with a new
        journal.
    :param epoch_batch: the newest stored batch of a replaced epoch, in the
        agent's numbers.
    """

    number: int
    state: collector_replies.EpochState = collector_replies.EpochState.CURRENT
    duplicate: bool = False
    missed: bool = False
    begins: bool = False
    anew: bool = False
    epoch_batch: int = 0

    @property
    def new(self) -> bool:
        """Return whether the batch must be stored."""
        return (
            self.state is collector_replies.EpochState.CURRENT
            and not self.duplicate
        )


def of_current(host: Host, epoch: str | None, number: int) -> Place | None:
    """Return the place of a batch of the host's current epoch.

    :param number: in the agent's numbers.
    :returns: None when the batch is of another epoch.
    """
    if epoch != host.epoch:
        return None
    stored = number + host.batch_offset
    if epoch is not None and stored > host.last_batch + MAX_GAP:
        return Place(host.last_batch + 1, missed=True)
    return Place(
        stored,
        duplicate=stored <= host.last_batch,
        missed=stored != host.last_batch + 1,
    )


def of(
    host: Host,
    replaced: Replaced | None,
    epoch: str | None,
    number: int,
    after: int | None,
) -> Place:
    """Return the place of a batch.

    :param replaced: replaced epochs, each with its newest stored batch in the
        agent's numbers.
    """
    found = of_current(host, epoch, number)
    if found is not None:
        return found
    stored = number + host.batch_offset
    if epoch is None:
        # An agent of a release without epochs reports now.
        if host.batch_offset or stored <= host.last_batch:
            return Place(stored, duplicate=True)
        return Place(stored, missed=True)
    for old, newest in replaced or ():
        if old == epoch:
            return Place(
                stored,
                collector_replies.EpochState.REPLACED,
                duplicate=number <= newest,
                epoch_batch=newest,
            )
    if (
        host.epoch is None
        and not host.batch_offset
        and (number == host.last_batch > 0)
    ):
        # A repetition after an upgrade of the agent.
        return Place(stored, duplicate=True)
    if (after or 0) != host.last_batch:
        return Place(stored, collector_replies.EpochState.UNOPENED)
    anew = host.last_batch > 0 and not (
        host.last_batch < stored <= host.last_batch + MAX_GAP
    )
    return Place(
        host.last_batch + 1 if anew else stored,
        missed=stored != host.last_batch + 1,
        begins=True,
        anew=anew,
    )


def advance(
    host: ty.Any, epoch: str | None, number: int, place: Place
) -> None:
    """Update a host's row for a stored batch.

    :param number: in the agent's numbers.
    """
    if place.begins:
        if host.epoch is not None:
            host.replaced_epochs = [
                [host.epoch, host.last_batch - host.batch_offset],
                *(host.replaced_epochs or ()),
            ][:MAX_REPLACED]
        host.epoch = epoch
    host.last_batch = place.number
    if epoch is not None:
        host.batch_offset = place.number - number


def reply(
    host: Host, epoch: str | None, place: Place, full: bool = False
) -> collector_replies.ReportReply:
    """Return the reply to a batch.

    It requests a full report when batches before this one were not stored, or
    when the host is not known.

    :param host: with the contents of the batch, if that was stored.
    :param epoch: the batch's.
    :param full: the batch is a full report.
    """
    newest = place.number if place.new else host.last_batch
    return collector_replies.ReportReply(
        duplicate=place.duplicate,
        overrides_generation=host.overrides_generation,
        jobs_generation=host.jobs_generation,
        resync=place.new and not full and (place.missed or not host.known),
        last_batch=0 if epoch is None else newest,
        epoch_state=place.state,
        epoch_batch=place.epoch_batch,
    )


def reset(database: db.Database, name: str) -> int:
    """Accept the next batch of a host's agent under any number.

    No stored data is lost, except for samples under numbers that no agent of
    this release uses.

    :returns: the stored number that the next batch follows.
    :raises errors.NotFound: when no agent ever reported from it.
    """

    def work(session: ty.Any) -> int:
        host = hosts.lock(session, name)
        if host is None:
            raise errors.NotFound(
                'no agent reported from a host named %s' % name,
                contract_errors.Code.HOST_NOT_FOUND,
            )
        if host.last_batch > MAX_STORED:
            host.last_batch = batches.drop_above(session, host.id, MAX_STORED)
        host.epoch, host.replaced_epochs = None, None
        host.batch_offset = host.last_batch
        return host.last_batch

    return database.write(work)

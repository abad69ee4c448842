# SPDX-License-Identifier: Apache-2.0

"""Under which number a batch is stored, or why it is not.

Agents number their batches upwards within an *epoch*: one run of one agent,
named by 128 random bits. The collector numbers what it stores of a host by
itself, upwards for ever: ``last_batch``. The difference between the two is
the host's ``batch_offset``, 0 until an agent numbers anew. So neither side
needs a clock, and the sums of usage, which follow the stored numbers, never
see one twice.

A batch of an epoch that the host has not had *begins* that epoch, if the
report says after which stored batch (``Report.after``). The agent knows that
number from the collector's last reply only. Stored numbers never repeat, so
a recorded report cannot begin its epoch again: the host is past that number.

An epoch that another one followed is over. Its agent is told so and goes on
under a new one. That happens when a journal was restored from a copy, and
when two agents report as one host; either is worth an event.

Reports without an epoch come from agents of a release that had none. Their
numbers are stored as they are, as that release did.
"""

from collections.abc import Sequence
import dataclasses
import typing as ty

from vsched_api.db.queries import batches
from vsched_api.db.queries import hosts
from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import messages

#: How many replaced epochs of a host are remembered, the newest ones.
MAX_REPLACED = 16

#: The largest gap between two batches that is stored as such. A larger one
#: is closed: stored numbers must not run out.
MAX_GAP = 2**32

#: A stored number above this one cannot be followed for long.
MAX_STORED = 2**62

Replaced = Sequence[Sequence[ty.Any]]


class Host(ty.Protocol):
    """What is known of a host's batches, and what its agent is told."""

    @property
    def last_batch(self) -> ty.Any:
        """The newest batch, as the collector numbers them."""

    @property
    def batch_offset(self) -> ty.Any:
        """How much more that is than the agent's number."""

    @property
    def epoch(self) -> ty.Any:
        """The current epoch; None before the first."""

    @property
    def known(self) -> ty.Any:
        """Whether it told what it is, and which instances it has."""

    @property
    def overrides_generation(self) -> ty.Any:
        """The generation of its overrides."""

    @property
    def jobs_generation(self) -> ty.Any:
        """The generation of its jobs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where a batch belongs.

    :param state: of its epoch; when it is not current, nothing is stored.
    :param number: the stored number.
    :param duplicate: it is stored already.
    :param missed: batches before it were not stored.
    :param begins: it begins its epoch.
    :param anew: the agent numbers anew, as with a new journal.
    :param epoch_batch: the newest stored batch of a replaced epoch, as the
        agent numbers them.
    """

    number: int
    state: messages.EpochState = messages.EpochState.CURRENT
    duplicate: bool = False
    missed: bool = False
    begins: bool = False
    anew: bool = False
    epoch_batch: int = 0

    @property
    def new(self) -> bool:
        """Whether the batch is to be stored."""
        return self.state is messages.EpochState.CURRENT and not self.duplicate


def of_current(host: Host, epoch: str | None, number: int) -> Place | None:
    """The place of a batch of the host's current epoch.

    :param number: as the agent numbers it.
    :returns: None when it is of another epoch.
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
    """The place of any batch.

    :param replaced: epochs that others followed, each with its newest
        stored batch as the agent numbered it.
    """
    found = of_current(host, epoch, number)
    if found is not None:
        return found
    stored = number + host.batch_offset
    if epoch is None:
        # An agent of a release without epochs has taken over.
        if host.batch_offset or stored <= host.last_batch:
            return Place(stored, duplicate=True)
        return Place(stored, missed=True)
    for old, newest in replaced or ():
        if old == epoch:
            return Place(
                stored,
                messages.EpochState.REPLACED,
                duplicate=number <= newest,
                epoch_batch=newest,
            )
    if (
        host.epoch is None
        and not host.batch_offset
        and (number == host.last_batch > 0)
    ):
        # Sent again after an upgrade of its agent.
        return Place(stored, duplicate=True)
    if (after or 0) != host.last_batch:
        return Place(stored, messages.EpochState.UNOPENED)
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
    """Note in a host's row that a batch is stored.

    :param number: as the agent numbers it.
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
) -> messages.ReportReply:
    """Answer a batch, stored by now unless its place says otherwise.

    The agent is asked for a full report when batches before this one were
    not stored, or its host is not known.

    :param host: with what the batch told of it.
    :param epoch: the batch's.
    :param full: the batch is a full report.
    """
    newest = place.number if place.new else host.last_batch
    return messages.ReportReply(
        duplicate=place.duplicate,
        overrides_generation=host.overrides_generation,
        jobs_generation=host.jobs_generation,
        resync=place.new and not full and (place.missed or not host.known),
        last_batch=0 if epoch is None else newest,
        epoch_state=place.state,
        epoch_batch=place.epoch_batch,
    )


def reset(database: db.Database, name: str) -> int:
    """Accept whatever a host's agent sends next, however it is numbered.

    Nothing that is stored is lost, but for samples under numbers that no
    agent of this release uses.

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

# SPDX-License-Identifier: Apache-2.0

"""What the collector replies to agents.

Messages like those of :mod:`vsched_lib.contract.messages`, where the jobs
are: agents report on them.
"""

import dataclasses
import enum
import typing as ty

from vsched_lib.contract import balloons as balloon_messages
from vsched_lib.contract import bounds
from vsched_lib.contract import wire


class EpochState(enum.StrEnum):
    """How the collector classifies a report's epoch."""

    #: It is the host's newest, or starts with this batch.
    CURRENT = 'current'
    #: It is new and ``Report.after`` is not the host's newest batch.
    UNOPENED = 'unopened'
    #: Another one has followed it.
    REPLACED = 'replaced'


@dataclasses.dataclass(frozen=True, slots=True)
class ReportReply(wire.Message):
    """The collector's answer: the batch is committed.

    Unless ``epoch_state`` is not current: then nothing was stored.

    :param duplicate: the batch had been stored before.
    :param overrides_generation: the host's newest; an agent with an older
        one fetches the overrides.
    :param jobs_generation: likewise of the host's jobs.
    :param resync: the collector has lost earlier batches of the host, e.g.
        with a restored database: the next one should be full.
    :param epoch_state: of the report's epoch.
    :param last_batch: the host's newest batch, as the collector numbers
        them; goes into the next report's ``after``.
    :param epoch_batch: of a replaced epoch, the newest batch that is
        stored, as the agent numbers them.
    """

    duplicate: bool
    overrides_generation: bounds.Number
    resync: bool = False
    jobs_generation: bounds.Number = 0
    epoch_state: EpochState = EpochState.CURRENT
    last_batch: bounds.Number = 0
    epoch_batch: bounds.Number = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Override(wire.Message):
    """A reservation that an operator set instead of the flavor's.

    :param specs: those of :data:`extra_specs.OVERRIDABLE` that are set as
        well, as text by key; for the others the flavor's hold.
    :param request_id: of the request that set it; the agent's events name
        it.
    """

    instance_uuid: bounds.Uuid
    generation: bounds.Number
    runtime_us: bounds.Number
    period_us: bounds.Number
    mode: bounds.Word
    backend: bounds.Word | None = None
    specs: bounds.Figures = dataclasses.field(default_factory=dict)
    request_id: bounds.Word | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Overrides(wire.Message):
    """Every override of one host, and the generation of the list.

    :param balloons: the balloon orders of operators there.
    """

    generation: bounds.Number
    overrides: ty.Annotated[tuple[Override, ...], bounds.Items(100_000)] = ()
    balloons: ty.Annotated[
        tuple[balloon_messages.BalloonOrder, ...], bounds.Items(100_000)
    ] = ()

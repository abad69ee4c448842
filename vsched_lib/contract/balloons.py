# SPDX-License-Identifier: Apache-2.0

"""Balloon status of instances, and the balloon orders of operators.

Messages like those of :mod:`vsched_lib.contract.messages`.
"""

import dataclasses
import enum
import typing as ty

from vsched_lib.contract import bounds
from vsched_lib.contract import errors
from vsched_lib.contract import wire
from vsched_lib.model import balloon_trial

Code = errors.Code

#: The result of a balloon.
Outcome = balloon_trial.Outcome


class BalloonState(enum.StrEnum):
    """The state of an instance's balloon."""

    FULL = 'full'
    TRIAL = 'trial'
    KEPT = 'kept'
    MANUAL = 'manual'
    RETURNING = 'returning'


class OrderState(enum.StrEnum):
    """The state of an order."""

    PENDING = 'pending'
    APPLIED = 'applied'
    REFUSED = 'refused'


@dataclasses.dataclass(frozen=True, slots=True)
class BalloonOrder(wire.Message):
    """An operator's balloon order for one instance.

    :param generation: of the overrides, which it is a part of.
    :param target_vcpus: how many vCPUs it should use; None leaves that to
        the agent.
    :param frozen: the agent neither takes nor gives back vCPUs by itself.
    """

    instance_uuid: bounds.Uuid
    generation: bounds.Number
    target_vcpus: bounds.Vcpus | None = None
    frozen: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class BalloonReport(wire.Message):
    """The balloon status of one instance.

    :param auto: whether its flavor lets vCPUs be taken.
    :param vcpus: how many it is configured for.
    :param online_vcpus: how many of them are online.
    :param min_vcpus: fewest that its flavor accepts.
    :param floor_vcpus: fewest that can also use all of its reservation.
    :param since: when the state was entered.
    :param dry_run: the agent only reports what it would do.
    :param pinned: its vCPUs are pinned.
    :param guest_answers: whether its guest agent answers; None: not tried.
    :param cpus: host CPUs that its vCPUs are bound to.
    :param cause: why it has fewer vCPUs online.
    :param not_before: no vCPU is taken before that unless an operator orders
        it; None for no limit.
    :param failures: balloons in a row that did not pay, or failed.
    :param generation: of the order that this answers, 0 without one.
    :param order_state: state of that order; None without one.
    :param code: a :class:`errors.Code` when it is not done as ordered.
    """

    instance_uuid: bounds.Uuid
    state: BalloonState
    auto: bool
    vcpus: bounds.Vcpus
    online_vcpus: bounds.Vcpus
    min_vcpus: bounds.Vcpus
    floor_vcpus: bounds.Vcpus
    since: bounds.Seconds
    dry_run: bool = False
    pinned: bool = False
    guest_answers: bool | None = None
    cpus: ty.Annotated[tuple[bounds.Cpu, ...], bounds.Items(65_536)] = ()
    cause: bounds.Sentence | None = None
    not_before: bounds.Seconds | None = None
    failures: bounds.Count = 0
    generation: bounds.Number = 0
    order_state: OrderState | None = None
    code: bounds.Word | None = None
    detail: bounds.Sentence | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class BalloonChange(wire.Message):
    """One balloon: from when vCPUs were taken until that changed.

    Reported when it starts and again with its outcome.

    :param vcpus: how many the instance is configured for.
    :param before_vcpus: how many it used.
    :param online_vcpus: how many it kept online, or would have.
    :param manual: whether an operator ordered it.
    :param cause: why.
    :param ended_at: None while it lasts.
    :param took_ms: from the command until the guest was verified; None when
        it was not.
    :param outcome: None while unknown; a kept balloon may end later.
    :param detail: why it ended.
    """

    uuid: bounds.Uuid
    instance_uuid: bounds.Uuid
    started_at: bounds.Seconds
    vcpus: bounds.Vcpus
    before_vcpus: bounds.Vcpus
    online_vcpus: bounds.Vcpus
    cause: bounds.Sentence
    manual: bool = False
    ended_at: bounds.Seconds | None = None
    took_ms: bounds.Milliseconds | None = None
    outcome: Outcome | None = None
    detail: bounds.Sentence | None = None


def refusal(target_vcpus: int, report: BalloonReport) -> errors.Refused | None:
    """Return why an instance cannot keep so many vCPUs online, or None.

    :param report: its status, from its agent.
    """
    figures = {
        'target_vcpus': target_vcpus,
        'vcpus': report.vcpus,
        'min_vcpus': report.min_vcpus,
        'floor_vcpus': report.floor_vcpus,
    }
    found: tuple[str, Code] | None = None
    if not report.auto:
        found = (
            'its flavor does not have vsched:balloon=auto',
            Code.BALLOON_EXCLUDED,
        )
    elif report.pinned:
        found = 'its vCPUs are pinned', Code.BALLOON_EXCLUDED
    elif not 1 <= target_vcpus <= report.vcpus:
        found = (
            'it is configured for %d vCPUs: 1 to %d are possible'
            % (report.vcpus, report.vcpus),
            Code.BALLOON_OUT_OF_BOUNDS,
        )
    elif target_vcpus < min(report.min_vcpus, report.vcpus):
        found = (
            'its flavor requires at least %d vCPUs' % report.min_vcpus,
            Code.BALLOON_OUT_OF_BOUNDS,
        )
    elif target_vcpus < report.floor_vcpus:
        found = (
            'what is reserved for it does not fit on fewer than %d '
            'vCPUs' % report.floor_vcpus,
            Code.BALLOON_DOES_NOT_FIT,
        )
    elif report.dry_run and target_vcpus != report.online_vcpus:
        found = (
            'its agent only reports what it would do: mode in '
            '[ballooning] is dry_run',
            Code.BALLOON_DRY_RUN,
        )
    elif report.guest_answers is False and target_vcpus != report.online_vcpus:
        found = (
            'its guest does not answer',
            Code.BALLOON_GUEST_AGENT_UNAVAILABLE,
        )
    if found is None:
        return None
    return errors.Refused(
        'it cannot be left with %d vCPUs: %s' % (target_vcpus, found[0]),
        found[1],
        figures,
    )


def whole(changes: ty.Iterable[BalloonChange]) -> list[BalloonChange]:
    """Return the last report of each, in the order of the first ones."""
    return list({one.uuid: one for one in changes}.values())

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

"""How instances stand with ballooning, and what operators want of it.

Messages like those of :mod:`vsched_lib.contract.messages`.
"""

import dataclasses
import enum
import typing as ty

from vsched_lib.contract import errors
from vsched_lib.contract import wire
from vsched_lib.model import balloon_trial

Code = errors.Code

#: What became of a balloon.
Outcome = balloon_trial.Outcome


class BalloonState(enum.StrEnum):
    """How an instance stands."""

    FULL = 'full'
    TRIAL = 'trial'
    KEPT = 'kept'
    MANUAL = 'manual'
    RETURNING = 'returning'


class OrderState(enum.StrEnum):
    """How far an order has got."""

    PENDING = 'pending'
    APPLIED = 'applied'
    REFUSED = 'refused'


@dataclasses.dataclass(frozen=True, slots=True)
class BalloonOrder(wire.Message):
    """What an operator wants of one instance.

    :param generation: of the overrides, of which it is one.
    :param target_vcpus: how many vCPUs it should use; None leaves that to
        the agent.
    :param frozen: the agent neither takes nor gives back vCPUs by itself.
    """

    instance_uuid: str
    generation: int
    target_vcpus: int | None = None
    frozen: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class BalloonReport(wire.Message):
    """How one instance stands.

    :param auto: whether its flavor lets vCPUs be taken.
    :param vcpus: how many it is configured for.
    :param online_vcpus: how many it is left with.
    :param min_vcpus: fewest that its flavor accepts.
    :param floor_vcpus: fewest that can also use up its reservation.
    :param since: when the state was entered.
    :param dry_run: the agent only says what it would do.
    :param pinned: its vCPUs have places of their own.
    :param guest_answers: whether its guest can be told; None: not tried.
    :param cpus: host CPUs that its vCPUs are bound to.
    :param cause: why it is left with fewer.
    :param not_before: no vCPU is taken before that unless an operator says
        so; None when nothing is in the way.
    :param failures: balloons in a row that did not pay, or failed.
    :param generation: of the order that this answers, 0 without one.
    :param order_state: how far that has got; None without one.
    :param code: a :class:`errors.Code` when it is not done as ordered.
    """

    instance_uuid: str
    state: BalloonState
    auto: bool
    vcpus: int
    online_vcpus: int
    min_vcpus: int
    floor_vcpus: int
    since: float
    dry_run: bool = False
    pinned: bool = False
    guest_answers: bool | None = None
    cpus: tuple[int, ...] = ()
    cause: str | None = None
    not_before: float | None = None
    failures: int = 0
    generation: int = 0
    order_state: OrderState | None = None
    code: str | None = None
    detail: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class BalloonChange(wire.Message):
    """One balloon: from when vCPUs were taken until that changed.

    Told when it begins and again with what became of it.

    :param vcpus: how many the instance is configured for.
    :param before_vcpus: how many it used.
    :param online_vcpus: how many it was left with, or would have been.
    :param manual: whether an operator wanted it.
    :param cause: why.
    :param ended_at: None while it lasts.
    :param took_ms: from the command until the guest was verified; None when
        it did not get there.
    :param outcome: None while nothing is known; what is kept may end later.
    :param detail: why it ended.
    """

    uuid: str
    instance_uuid: str
    started_at: float
    vcpus: int
    before_vcpus: int
    online_vcpus: int
    cause: str
    manual: bool = False
    ended_at: float | None = None
    took_ms: int | None = None
    outcome: Outcome | None = None
    detail: str | None = None


def refusal(target_vcpus: int,
            report: BalloonReport) -> errors.Refused | None:
    """Why an instance can not be left with so many vCPUs, if so.

    :param report: how it stands, by its agent.
    """
    figures = {'target_vcpus': target_vcpus, 'vcpus': report.vcpus,
               'min_vcpus': report.min_vcpus,
               'floor_vcpus': report.floor_vcpus}
    found: tuple[str, Code] | None = None
    if not report.auto:
        found = ('its flavor does not say vsched:balloon=auto',
                 Code.BALLOON_EXCLUDED)
    elif report.pinned:
        found = 'its vCPUs are pinned', Code.BALLOON_EXCLUDED
    elif not 1 <= target_vcpus <= report.vcpus:
        found = ('it is configured for %d vCPUs: 1 to %d are possible' % (
            report.vcpus, report.vcpus), Code.BALLOON_OUT_OF_BOUNDS)
    elif target_vcpus < min(report.min_vcpus, report.vcpus):
        found = ('its flavor wants %d vCPUs at least' % report.min_vcpus,
                 Code.BALLOON_OUT_OF_BOUNDS)
    elif target_vcpus < report.floor_vcpus:
        found = ('what is reserved for it does not fit on fewer than %d '
                 'vCPUs' % report.floor_vcpus, Code.BALLOON_DOES_NOT_FIT)
    elif report.dry_run and target_vcpus != report.online_vcpus:
        found = ('its agent only says what it would do: mode in '
                 '[ballooning] is dry_run', Code.BALLOON_DRY_RUN)
    elif (report.guest_answers is False and
            target_vcpus != report.online_vcpus):
        found = 'its guest does not answer', Code.BALLOON_GUEST_MUTE
    if found is None:
        return None
    return errors.Refused('it can not be left with %d vCPUs: %s' % (
        target_vcpus, found[0]), found[1], figures)


def whole(changes: ty.Iterable[BalloonChange]) -> list[BalloonChange]:
    """What was told last of each, in the order that they were told of."""
    return list({one.uuid: one for one in changes}.values())

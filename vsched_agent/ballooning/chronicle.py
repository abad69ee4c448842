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

"""What is told of balloons: how instances stand, and what was done to them.

The thread that decides is its only caller.
"""

from collections.abc import Callable
import dataclasses
import time
import typing as ty
import uuid as uuids

from oslo_log import log as logging

from vsched_agent.ballooning import base
from vsched_agent.ballooning import instance as instances
from vsched_lib.contract import balloons
from vsched_lib.contract import wire
from vsched_lib.model import balloon_trial

LOG = logging.getLogger(__name__)

Outcome = balloon_trial.Outcome
State = balloons.BalloonState
OrderState = balloons.OrderState


class Chronicle:
    """Tells each thing once, and again when there is more to tell.

    :param settings: whether this is a dry run.
    :param publish: takes what is told.
    :param clock: the seconds that standings are in.
    """

    def __init__(self, settings: base.Settings, publish: base.Publish,
                 clock: Callable[[], float]) -> None:
        self._settings = settings
        self._publish = publish
        self._clock = clock
        self._told: dict[str, tuple[balloons.BalloonReport, float]] = {}

    # How instances stand

    def look(self, one: instances.Instance) -> None:
        """Tell how an instance stands, if that is news."""
        if not (one.wishes.auto or one.record or one.order or
                one.uuid in self._told):
            return
        report, not_before_s = self.report(one), one.standing.not_before_s
        told = self._told.get(one.uuid)
        if told is not None:
            report = dataclasses.replace(
                report, not_before=told[0].not_before
                if told[1] == not_before_s else report.not_before,
                since=told[0].since
                if told[0].state == report.state else report.since)
        if told != (report, not_before_s):
            self._told[one.uuid] = report, not_before_s
            self._publish(report)

    def forget(self, uuid: str) -> None:
        """The instance is gone."""
        self._told.pop(uuid, None)

    def report(self, one: instances.Instance) -> balloons.BalloonReport:
        """How an instance stands now; a state is new in it."""
        record, order = one.record, one.order
        wait_s = one.standing.not_before_s - self._clock()
        now = time.time()
        state = State.FULL
        if record is not None:
            state = State.MANUAL if record.manual else State.KEPT
            if one.leave is not None:
                state = State.RETURNING
            elif one.standing.phase is balloon_trial.Phase.TRIAL:
                state = State.TRIAL
        refused = one.refused if order is not None else None
        return balloons.BalloonReport(
            one.uuid, state, one.wishes.auto, one.vcpus, one.online,
            one.wishes.min_vcpus, one.floor, now,
            dry_run=self._settings.dry_run, pinned=one.pinned,
            guest_answers=one.answers,
            cpus=tuple(sorted(record.pins.values())) if record else (),
            cause=record.cause if record else None,
            not_before=now + wait_s if wait_s > 0 else None,
            failures=one.standing.failures,
            generation=order.generation if order else 0,
            order_state=_order_state(one),
            code=str(refused.code) if refused else None,
            detail=refused.detail if refused else None)

    # What was done

    def taken(self, one: instances.Instance, record: base.Record,
              before_vcpus: int, took_s: float) -> base.Record:
        """An instance was left with fewer vCPUs, or with other ones.

        :param before_vcpus: how many it had.
        :returns: the record, to be kept with what was told.
        """
        change = balloons.BalloonChange(
            str(uuids.uuid4()), one.uuid, time.time(), one.vcpus,
            before_vcpus, len(record.online), record.cause, record.manual,
            took_ms=round(1000 * took_s))
        self._publish(change)
        return dataclasses.replace(record, change=change.to_dict())

    def kept(self, record: base.Record, detail: str) -> base.Record:
        """It pays, as far as anybody knows.

        :returns: likewise.
        """
        change = dataclasses.replace(
            _change(record), outcome=Outcome.KEPT, detail=detail)
        self._publish(change)
        return dataclasses.replace(record, change=change.to_dict())

    def ended(self, record: base.Record, outcome: Outcome,
              detail: str) -> None:
        """Something else follows, or all vCPUs are back."""
        self._publish(dataclasses.replace(
            _change(record), ended_at=time.time(), outcome=outcome,
            detail=detail))

    def nothing(self, one: instances.Instance, wanted: 'Wanted',
                outcome: Outcome, detail: str | None = None,
                ) -> dict[str, ty.Any]:
        """Nothing came of it, or was meant to.

        :returns: what was told, for a record of what is left of it.
        """
        now = time.time()
        change = balloons.BalloonChange(
            str(uuids.uuid4()), one.uuid, now, one.vcpus, one.online,
            wanted.vcpus, wanted.cause, wanted.manual, now, None, outcome,
            detail)
        self._publish(change)
        return change.to_dict()


class Wanted(ty.NamedTuple):
    """What was to be done to an instance."""

    vcpus: int
    cause: str
    manual: bool


def _change(record: base.Record) -> balloons.BalloonChange:
    try:
        if record.change is not None:
            return balloons.BalloonChange.from_dict(record.change)
    except wire.MalformedMessage as problem:
        LOG.warning('instance %s: %s', record.instance_uuid, problem)
    # Its agent was killed in the middle of it.
    return balloons.BalloonChange(
        str(uuids.uuid4()), record.instance_uuid, record.at,
        len(record.configured), len(record.configured), len(record.online),
        record.cause, record.manual)


def _order_state(one: instances.Instance) -> OrderState | None:
    if one.order is None:
        return None
    if one.refused is not None:
        return OrderState.REFUSED
    target_vcpus = one.order.target_vcpus
    if target_vcpus is None:
        return OrderState.APPLIED
    done = one.online == target_vcpus and not one.busy and (
        one.record is None or one.record.manual)
    return OrderState.APPLIED if done else OrderState.PENDING

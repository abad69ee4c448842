# SPDX-License-Identifier: Apache-2.0

"""Report instances' ballooning states and changes.

Called by the loop's thread only.
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


class BalloonHistory:
    """Reports states and changes once, and again when they change.

    :param settings: whether this is a dry run.
    :param publish: sends reports.
    :param clock: monotonic seconds, as in statuses.
    """

    def __init__(
        self,
        settings: base.Settings,
        publish: base.Publish,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._publish = publish
        self._clock = clock
        self._reported: dict[str, tuple[balloons.BalloonReport, float]] = {}

    # States of instances

    def publish_state(self, one: instances.Instance) -> None:
        """Report an instance's state if it changed."""
        if not (
            one.flavor.auto
            or one.record
            or one.order
            or one.uuid in self._reported
        ):
            return
        report, not_before_s = self.report(one), one.status.not_before_s
        last = self._reported.get(one.uuid)
        if last is not None:
            report = dataclasses.replace(
                report,
                not_before=last[0].not_before
                if last[1] == not_before_s
                else report.not_before,
                since=last[0].since
                if last[0].state == report.state
                else report.since,
            )
        if last != (report, not_before_s):
            self._reported[one.uuid] = report, not_before_s
            self._publish(report)

    def forget(self, uuid: str) -> None:
        """Forget an instance that does not run any more."""
        self._reported.pop(uuid, None)

    def report(self, one: instances.Instance) -> balloons.BalloonReport:
        """Return an instance's state, as of now."""
        record, order = one.record, one.order
        wait_s = one.status.not_before_s - self._clock()
        now = time.time()
        state = State.FULL
        if record is not None:
            state = State.MANUAL if record.manual else State.KEPT
            if one.return_cause is not None:
                state = State.RETURNING
            elif one.status.phase is balloon_trial.Phase.TRIAL:
                state = State.TRIAL
        refused = one.refused if order is not None else None
        return balloons.BalloonReport(
            one.uuid,
            state,
            one.flavor.auto,
            one.vcpus,
            one.online,
            one.flavor.min_vcpus,
            one.floor,
            now,
            dry_run=self._settings.dry_run,
            pinned=one.pinned,
            guest_answers=one.guest_answers,
            cpus=tuple(sorted(record.pins.values())) if record else (),
            cause=record.cause if record else None,
            not_before=now + wait_s if wait_s > 0 else None,
            failures=one.status.failures,
            generation=order.generation if order else 0,
            order_state=_order_state(one),
            code=str(refused.code) if refused else None,
            detail=refused.detail if refused else None,
        )

    # Changes

    def taken(
        self,
        one: instances.Instance,
        record: base.Record,
        before_vcpus: int,
        took_s: float,
    ) -> base.Record:
        """Report that an instance was left with fewer or other vCPUs.

        :param before_vcpus: how many it had.
        :returns: the record with the report, to be stored.
        """
        change = balloons.BalloonChange(
            str(uuids.uuid4()),
            one.uuid,
            time.time(),
            one.vcpus,
            before_vcpus,
            len(record.online),
            record.cause,
            record.manual,
            took_ms=round(1000 * took_s),
        )
        self._publish(change)
        return dataclasses.replace(record, change=change.to_dict())

    def kept(self, record: base.Record, detail: str) -> base.Record:
        """Report that a balloon is kept.

        :returns: the record with the report, to be stored.
        """
        change = dataclasses.replace(
            _change(record), outcome=Outcome.KEPT, detail=detail
        )
        self._publish(change)
        return dataclasses.replace(record, change=change.to_dict())

    def ended(
        self, record: base.Record, outcome: Outcome, detail: str
    ) -> None:
        """Report the end of a balloon."""
        self._publish(
            dataclasses.replace(
                _change(record),
                ended_at=time.time(),
                outcome=outcome,
                detail=detail,
            )
        )

    def attempted(
        self,
        one: instances.Instance,
        attempt: 'Attempt',
        outcome: Outcome,
        detail: str | None = None,
    ) -> dict[str, ty.Any]:
        """Report a change that failed or was only proposed.

        :returns: the report, for the record of what remains.
        """
        now = time.time()
        change = balloons.BalloonChange(
            str(uuids.uuid4()),
            one.uuid,
            now,
            one.vcpus,
            one.online,
            attempt.vcpus,
            attempt.cause,
            attempt.manual,
            now,
            None,
            outcome,
            detail,
        )
        self._publish(change)
        return change.to_dict()


class Attempt(ty.NamedTuple):
    """A change that was attempted or proposed."""

    vcpus: int
    cause: str
    manual: bool


def _change(record: base.Record) -> balloons.BalloonChange:
    try:
        if record.change is not None:
            return balloons.BalloonChange.from_dict(record.change)
    except wire.MalformedMessage as problem:
        LOG.warning('instance %s: %s', record.instance_uuid, problem)
    # The agent was killed before the change was complete.
    return balloons.BalloonChange(
        str(uuids.uuid4()),
        record.instance_uuid,
        record.at,
        len(record.configured),
        len(record.configured),
        len(record.online),
        record.cause,
        record.manual,
    )


def _order_state(one: instances.Instance) -> OrderState | None:
    if one.order is None:
        return None
    if one.refused is not None:
        return OrderState.REFUSED
    target_vcpus = one.order.target_vcpus
    if target_vcpus is None:
        return OrderState.APPLIED
    done = (
        one.online == target_vcpus
        and not one.busy
        and (one.record is None or one.record.manual)
    )
    return OrderState.APPLIED if done else OrderState.PENDING

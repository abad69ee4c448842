# SPDX-License-Identifier: Apache-2.0

"""The balloons of a simulated host: orders of operators are carried out."""

from collections.abc import Iterable
import dataclasses
import uuid

from vsched_lib.contract import balloons
from vsched_standalone.demo import instance as instances

BalloonState = balloons.BalloonState
OrderState = balloons.OrderState


class Balloons:
    """The balloon status of the instances whose flavor permits balloons.

    :param members: these instances.
    :param now: in seconds since the epoch.
    """

    def __init__(
        self, members: Iterable[instances.Instance], now: float
    ) -> None:
        self._instances = {one.uuid: one for one in members}
        self._reports = {
            one.uuid: balloons.BalloonReport(
                instance_uuid=one.uuid,
                state=BalloonState.FULL,
                auto=True,
                vcpus=one.info.vcpus,
                online_vcpus=one.info.vcpus,
                min_vcpus=1,
                floor_vcpus=1,
                since=now,
                guest_answers=True,
            )
            for one in self._instances.values()
        }
        self._changes: dict[str, balloons.BalloonChange] = {}
        self._unsent_changes: list[balloons.BalloonChange] = []

    @property
    def reports(self) -> tuple[balloons.BalloonReport, ...]:
        """Return the status of all of them."""
        return tuple(self._reports.values())

    def sent_changes(self) -> tuple[balloons.BalloonChange, ...]:
        """Return the changes since the last call."""
        found, self._unsent_changes = tuple(self._unsent_changes), []
        return found

    def take(self, uuid_: str, online_vcpus: int, now: float) -> None:
        """Keep an instance at fewer vCPUs, as if the agent had decided it."""
        self._start(
            uuid_,
            online_vcpus,
            now,
            BalloonState.KEPT,
            '3 of 4 vCPUs waited for each other',
        )

    def set_orders(
        self, orders: Iterable[balloons.BalloonOrder], now: float
    ) -> None:
        """Carry out the orders of operators; end those that are absent."""
        by_uuid = {one.instance_uuid: one for one in orders}
        for uuid_, report in list(self._reports.items()):
            order = by_uuid.get(uuid_)
            if order is None:
                if report.generation:
                    self._end(uuid_, now, 'the order was removed')
            elif order.generation != report.generation:
                self._apply(order, now)

    def _apply(self, order: balloons.BalloonOrder, now: float) -> None:
        uuid_, target = order.instance_uuid, order.target_vcpus
        before = self._reports[uuid_]
        refusal = None if target is None else balloons.refusal(target, before)
        if refusal is not None:
            self._reports[uuid_] = dataclasses.replace(
                before,
                generation=order.generation,
                order_state=OrderState.REFUSED,
                code=str(refusal.code),
                detail=refusal.detail,
            )
            return
        if target is not None and target != before.online_vcpus:
            if target < before.vcpus:
                self._start(
                    uuid_,
                    target,
                    now,
                    BalloonState.MANUAL,
                    'ordered by an operator',
                )
            else:
                self._end(uuid_, now, 'ordered by an operator')
        self._reports[uuid_] = dataclasses.replace(
            self._reports[uuid_],
            generation=order.generation,
            order_state=OrderState.APPLIED,
            code=None,
            detail=None,
        )

    def _start(
        self,
        uuid_: str,
        online_vcpus: int,
        now: float,
        state: BalloonState,
        cause: str,
    ) -> None:
        before = self._reports[uuid_]
        self._close(uuid_, now, balloons.Outcome.CHANGED, cause)
        change = balloons.BalloonChange(
            uuid=str(uuid.uuid4()),
            instance_uuid=uuid_,
            started_at=now,
            vcpus=before.vcpus,
            before_vcpus=before.online_vcpus,
            online_vcpus=online_vcpus,
            cause=cause,
            manual=state is BalloonState.MANUAL,
            took_ms=180,
            outcome=balloons.Outcome.KEPT,
        )
        self._changes[uuid_] = change
        self._unsent_changes.append(change)
        self._instances[uuid_].online_vcpus = online_vcpus
        self._reports[uuid_] = dataclasses.replace(
            before,
            state=state,
            online_vcpus=online_vcpus,
            since=now,
            cause=cause,
        )

    def _end(self, uuid_: str, now: float, why: str) -> None:
        self._close(uuid_, now, balloons.Outcome.UNDONE, why)
        instance = self._instances[uuid_]
        instance.online_vcpus = instance.info.vcpus
        self._reports[uuid_] = dataclasses.replace(
            self._reports[uuid_],
            state=BalloonState.FULL,
            online_vcpus=instance.info.vcpus,
            since=now,
            cause=None,
            generation=0,
            order_state=None,
            code=None,
            detail=None,
        )

    def _close(
        self, uuid_: str, now: float, outcome: balloons.Outcome, why: str
    ) -> None:
        change = self._changes.pop(uuid_, None)
        if change is not None:
            self._unsent_changes.append(
                dataclasses.replace(
                    change, ended_at=now, outcome=outcome, detail=why
                )
            )

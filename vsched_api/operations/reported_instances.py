# SPDX-License-Identifier: Apache-2.0

"""What a report says of a host's instances."""

from collections.abc import Collection
import typing as ty

from vsched_api.db import models
from vsched_api.db.queries import balloon_changes
from vsched_api.db.queries import latest
from vsched_api.db.queries import reservations
from vsched_api.operations import inspection
from vsched_lib.contract import balloons as contract


def first_list(
    host: models.Host, listed: dict[str, inspection.Row], at: float
) -> list[inspection.Row]:
    """Return the rows of the instances of a host that had none.

    :param host: added.
    """
    return [
        {
            'host_id': host.id,
            'uuid': instance_uuid,
            'present': True,
            'arrived_at': at,
            **values,
        }
        for instance_uuid, values in listed.items()
    ]


def update_list(
    session: ty.Any,
    host: models.Host,
    rows: dict[str, models.Instance],
    listed: dict[str, inspection.Row],
    at: float,
) -> Collection[str]:
    """Update the instances of a host from its list.

    :param rows: the host's instances so far; new ones are added.
    :returns: the instances that arrived or left.
    """
    came, left = [], []
    for instance_uuid, values in listed.items():
        row = rows.get(instance_uuid)
        if row is not None and row.present:
            _update(row, values)
            continue
        came.append(instance_uuid)
        if row is None:
            row = models.Instance(host_id=host.id, uuid=instance_uuid)
            session.add(row)
            rows[instance_uuid] = row
        else:
            # The reservation of its last stay does not apply to this one.
            latest.delete(session, models.Reservation, [row.id])
        _update(row, values)
        row.present, row.arrived_at, row.left_at = True, at, None
    for instance_uuid, row in rows.items():
        if row.present and instance_uuid not in listed:
            row.present, row.left_at = False, at
            left.append(row)
    session.flush()
    if left:
        reservations.release(session, [row.id for row in left], at)
        latest.delete(session, models.Balloon, [row.id for row in left])
    return {*came, *(row.uuid for row in left)}


def _update(row: models.Instance, values: inspection.Row) -> None:
    for name, value in values.items():
        setattr(row, name, value)


def put_reservations(
    session: ty.Any,
    host: models.Host,
    rows: dict[str, models.Instance],
    reports: dict[str, inspection.Row],
    at: float,
) -> None:
    """Store what a host reported of reservations.

    :param rows: the host's instances; those that it has not listed are added.
    """
    if not reports:
        return
    for instance_uuid, values in reports.items():
        if instance_uuid not in rows:
            # The report precedes the list, or follows the removal from it.
            # Only a list makes an instance present.
            rows[instance_uuid] = models.Instance(
                host_id=host.id,
                uuid=instance_uuid,
                name='',
                vcpus=values['vcpus'],
                present=False,
                arrived_at=at,
                left_at=at,
            )
            session.add(rows[instance_uuid])
    session.flush()
    latest.put(
        session,
        models.Reservation,
        {
            rows[instance_uuid].id: values
            for instance_uuid, values in reports.items()
        },
    )


def put_balloons(
    session: ty.Any,
    host: models.Host,
    rows: dict[str, models.Instance],
    batch: inspection.Batch,
) -> None:
    """Store what a host reported of balloons.

    :param rows: the host's instances.
    """
    # Reports on instances that have left are outdated.
    reported = {
        rows[instance_uuid].id: values
        for instance_uuid, values in batch.balloons.items()
        if instance_uuid in rows and rows[instance_uuid].present
    }
    if batch.all_balloons:
        latest.delete(
            session,
            models.Balloon,
            [row.id for row in rows.values() if row.id not in reported],
        )
    if reported:
        latest.put(session, models.Balloon, reported)
    full = {
        instance_uuid
        for instance_uuid, values in batch.balloons.items()
        if values['state'] == contract.BalloonState.FULL
    }
    if full:
        # As after a restore without an agent; the contents of this batch are
        # stored afterwards.
        balloon_changes.close(
            session,
            host.id,
            full,
            batch.at,
            contract.Outcome.UNDONE.value,
            'all vCPUs are back; the cause is not known',
        )

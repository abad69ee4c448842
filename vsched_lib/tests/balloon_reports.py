# SPDX-License-Identifier: Apache-2.0

"""What agents may tell of balloons."""

import typing as ty
import uuid

from vsched_lib.contract import balloons

NOW = 1_800_000_000.0


def report(instance_uuid: str, **changes: ty.Any) -> balloons.BalloonReport:
    """An instance that has all of its four vCPUs."""
    values: dict[str, ty.Any] = {
        'state': balloons.BalloonState.FULL,
        'auto': True,
        'vcpus': 4,
        'online_vcpus': 4,
        'min_vcpus': 1,
        'floor_vcpus': 1,
        'since': NOW,
        'guest_answers': True,
    }
    return balloons.BalloonReport(instance_uuid, **{**values, **changes})


def change(instance_uuid: str, **changes: ty.Any) -> balloons.BalloonChange:
    """A balloon that has just begun."""
    values: dict[str, ty.Any] = {
        'uuid': str(uuid.uuid4()),
        'started_at': NOW,
        'vcpus': 4,
        'before_vcpus': 4,
        'online_vcpus': 1,
        'cause': 'it waited',
        'took_ms': 400,
    }
    return balloons.BalloonChange(
        instance_uuid=instance_uuid, **{**values, **changes}
    )

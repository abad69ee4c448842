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

"""What agents may tell of balloons."""

import typing as ty
import uuid

from vsched_lib.contract import balloons

NOW = 1_800_000_000.0


def report(instance_uuid: str, **changes: ty.Any) -> balloons.BalloonReport:
    """An instance that has all of its four vCPUs."""
    values: dict[str, ty.Any] = {
        'state': balloons.BalloonState.FULL, 'auto': True, 'vcpus': 4,
        'online_vcpus': 4, 'min_vcpus': 1, 'floor_vcpus': 1, 'since': NOW,
        'guest_answers': True}
    return balloons.BalloonReport(instance_uuid, **{**values, **changes})


def change(instance_uuid: str, **changes: ty.Any) -> balloons.BalloonChange:
    """A balloon that has just begun."""
    values: dict[str, ty.Any] = {
        'uuid': str(uuid.uuid4()), 'started_at': NOW, 'vcpus': 4,
        'before_vcpus': 4, 'online_vcpus': 1, 'cause': 'it waited',
        'took_ms': 400}
    return balloons.BalloonChange(
        instance_uuid=instance_uuid, **{**values, **changes})

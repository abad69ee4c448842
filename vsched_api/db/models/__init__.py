# SPDX-License-Identifier: Apache-2.0

"""The tables.

Times are seconds since the epoch (UTC) in double precision, as on the bus,
so that they compare alike on every database. Values in microseconds and
counters are 64 bits wide.
"""

from vsched_api.db.models.balloons import Balloon
from vsched_api.db.models.balloons import BalloonChange
from vsched_api.db.models.balloons import BalloonOrder
from vsched_api.db.models.base import Base
from vsched_api.db.models.host_keys import HostKey
from vsched_api.db.models.hosts import Counter
from vsched_api.db.models.hosts import Event
from vsched_api.db.models.hosts import Host
from vsched_api.db.models.hosts import Instance
from vsched_api.db.models.hosts import Override
from vsched_api.db.models.hosts import Reservation
from vsched_api.db.models.hosts import SnapshotHost
from vsched_api.db.models.jobs import Job
from vsched_api.db.models.profiles import ErrorPoint
from vsched_api.db.models.profiles import ErrorProfile
from vsched_api.db.models.profiles import OverheadProfile
from vsched_api.db.models.usage import HostTimeBucket
from vsched_api.db.models.usage import HostTimeSample
from vsched_api.db.models.usage import HostUsageBucket
from vsched_api.db.models.usage import Slowdown
from vsched_api.db.models.usage import UsageBucket
from vsched_api.db.models.usage import UsageFold
from vsched_api.db.models.usage import UsageSecond
from vsched_api.db.models.verifications import HostVerification

__all__ = (
    'Balloon',
    'BalloonChange',
    'BalloonOrder',
    'Base',
    'Counter',
    'ErrorPoint',
    'ErrorProfile',
    'Event',
    'Host',
    'HostKey',
    'HostTimeBucket',
    'HostTimeSample',
    'HostUsageBucket',
    'HostVerification',
    'Instance',
    'Job',
    'OverheadProfile',
    'Override',
    'Reservation',
    'SnapshotHost',
    'Slowdown',
    'UsageBucket',
    'UsageFold',
    'UsageSecond',
)

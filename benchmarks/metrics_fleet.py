# SPDX-License-Identifier: Apache-2.0

"""A fleet in a database, of which metrics are served."""

from collections.abc import Sequence
import typing as ty
import uuid

import sqlalchemy as sa

from benchmarks import stored_fleet
from vsched_api.db import models
from vsched_api.db import session
from vsched_api.tests import base
from vsched_lib.contract import errors
from vsched_lib.contract import messages

#: Of each host, all with a reservation.
INSTANCES = stored_fleet.RESERVATIONS
#: For how many minutes it has reported.
MINUTES = 30

_MINUTE_S = 60
_CHUNK = 5_000
_EVENTS = (
    errors.Code.AGENT_STARTED,
    errors.Code.DRIFT_REPAIRED,
    errors.Code.RESERVATION_APPLIED,
)


def fill(database: session.Database, hosts: int, now: float) -> None:
    """Store what there is of a fleet that has reported for half an hour."""
    newest = now // _MINUTE_S * _MINUTE_S
    ends = [newest - _MINUTE_S * number for number in range(MINUTES)]
    ids = range(1, hosts + 1)
    uuids = {
        number: [str(uuid.uuid4()) for _ in range(INSTANCES)] for number in ids
    }
    info = base.host_info(cpus=64, capacity_mcpu=60_000).to_dict()
    _insert(
        database,
        models.Host,
        [
            {
                'id': number,
                'name': 'node%05d' % number,
                'last_batch': 1_000,
                'overrides_generation': 0,
                'received_at': now - 1,
                'reported_at': now - 2,
                'listed_at': now - 1,
                'clock_skew_s': 0.01,
                'info': info,
            }
            for number in ids
        ],
    )
    _insert(
        database,
        models.UsageFold,
        [{'host_id': number, 'batch': 990} for number in ids],
    )
    _insert(
        database,
        models.SnapshotHost,
        [
            {
                'host_id': number,
                'name': 'node%05d' % number,
                'version': int(now * 1000) - hosts + number,
                'removed': False,
                'admitted_mcpu': 3_000,
                'facts': '{}',
                'certificates': '[]',
                'certified': False,
                'confidence': 0.8,
            }
            for number in ids
        ],
    )
    instances = [
        (number * INSTANCES + place, number, one)
        for number in ids
        for place, one in enumerate(uuids[number])
    ]
    _insert(
        database,
        models.Instance,
        [
            {
                'id': row,
                'uuid': one,
                'host_id': number,
                'name': 'vm-%d' % row,
                'vcpus': 1,
                'present': True,
                'arrived_at': now - 3_600,
            }
            for row, number, one in instances
        ],
    )
    reserved = base.reservation('').to_dict()
    _insert(
        database,
        models.Reservation,
        [
            {
                **{
                    name: reserved[name]
                    for name in (
                        'source',
                        'vcpus',
                        'since',
                        'generation',
                        'runtime_us',
                        'period_us',
                        'mode',
                        'figures',
                    )
                },
                'instance_id': row,
                'state': messages.State.APPLIED.value,
            }
            for row, _, _ in instances
        ],
    )
    _insert(
        database,
        models.Event,
        [
            {
                'uuid': str(uuid.uuid4()),
                'host_id': number,
                'at': now - 60 * place,
                'code': code.value,
                'severity': 'info',
                'detail': 'x',
                'figures': {},
            }
            for number in ids
            for place, code in enumerate(_EVENTS)
        ],
    )
    for at in ends:
        _insert(
            database,
            models.UsageBucket,
            [
                {
                    'host_id': number,
                    'length_s': _MINUTE_S,
                    'at': at,
                    'instance_uuid': one,
                    **_sums(at, row),
                }
                for row, number, one in instances
            ],
        )
        _insert(
            database,
            models.HostUsageBucket,
            [
                {
                    'host_id': number,
                    'length_s': _MINUTE_S,
                    'at': at,
                    'instances': INSTANCES,
                    **_sums(at, number),
                }
                for number in ids
            ],
        )
        _insert(
            database,
            models.HostTimeBucket,
            [
                {
                    'host_id': number,
                    'length_s': _MINUTE_S,
                    'at': at,
                    'samples': 12,
                    'first_at': at - _MINUTE_S,
                    'last_at': at,
                    'interval_us': 60_000_000,
                    'cpu_us': 64 * 60_000_000,
                    'idle_us': 58 * 60_000_000,
                    'steal_us': 1_000 * number,
                    'irq_us': 60_000,
                    'guest_us': 4 * 60_000_000,
                    'direct_us': 30_000_000,
                    'shared_us': 20_000_000,
                    'own_us': 70_000_000 - 1_000 * number,
                }
                for number in ids
            ],
        )
    database.write(_analyze)


def _sums(at: float, number: int) -> dict[str, ty.Any]:
    return {
        'samples': 12,
        'first_at': at - _MINUTE_S,
        'last_at': at,
        'interval_us': 60_000_000,
        'guest_us': 35_000_000 + number,
        'wait_us': 100_000 + number,
        'promised_us': 36_000_000,
        'promised_guest_us': 35_000_000 + number,
        'direct_us': 600_000 + number,
        'shared_us': 70_000,
        'wakeups': 240_000,
    }


def _insert(
    database: session.Database,
    row: ty.Any,
    values: Sequence[dict[str, ty.Any]],
) -> None:
    for start in range(0, len(values), _CHUNK):
        chunk = values[start : start + _CHUNK]

        def work(session: ty.Any, chunk: ty.Any = chunk) -> None:
            session.execute(sa.insert(row), chunk)

        database.write(work)


def _analyze(session: ty.Any) -> None:
    # As the servers do by themselves, some time after the rows came.
    connection = session.connection()
    if connection.dialect.name not in ('mysql', 'mariadb'):
        connection.exec_driver_sql('ANALYZE')
        return
    for name in models.Base.metadata.tables:
        connection.exec_driver_sql('ANALYZE TABLE %s' % name).fetchall()

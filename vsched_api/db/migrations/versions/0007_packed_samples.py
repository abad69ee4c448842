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

"""Samples of a second in one row, and what the CPUs of hosts did."""

import collections
import json
import math
import typing as ty

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0007'
down_revision = '0006'
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
_PACKED = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')
_OPTIONS = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4',
            'mysql_collate': 'utf8mb4_bin'}

_BUCKETS = ('usage_buckets', 'host_usage_buckets')
_COUNTS = ('direct_us', 'direct_wait_us', 'shared_us', 'wakeups',
           'net_rx_packets', 'net_tx_packets', 'disk_read_requests',
           'disk_write_requests')
_TIMES = ('idle_us', 'steal_us', 'irq_us', 'guest_us', 'direct_us',
          'shared_us', 'own_us')

# In the order in which they are packed.
_VALUES = ('instance_uuid', 'at', 'interval_us', 'guest_us', 'wait_us',
           'promised_us')

# How many rows are read at once, of a sample and packed, and how many
# samples become one row.
_CHUNK_ROWS = 10_000
_PACKED_ROWS = 100
_MAX_SAMPLES = 1000


def upgrade() -> None:
    """Pack the samples that are there, and make room for what is new.

    Samples that were folded before stay so, the others will be.
    """
    _create('usage_seconds', sa.Column('count', sa.BigInteger(),
                                       nullable=False),
            sa.Column('samples', _PACKED, nullable=False))
    _each_chunk('usage_samples', ('host_id', 'batch', *_VALUES),
                _CHUNK_ROWS, _pack)
    op.drop_table('usage_samples')
    for table in _BUCKETS:
        for name in _COUNTS:
            # With a default they are added in place.
            op.add_column(table, sa.Column(
                name, sa.BigInteger(), nullable=False,
                server_default=sa.text('0')))
    _create('host_time_samples', *_integers(
        'interval_us', 'cpus', *_TIMES))
    op.create_table(
        'host_time_buckets',
        sa.Column('id', _ID, primary_key=True),
        sa.Column('host_id', _ID, nullable=False),
        *_integers('length_s'),
        sa.Column('at', sa.Double(), nullable=False),
        *_integers('samples'),
        sa.Column('first_at', sa.Double(), nullable=False),
        sa.Column('last_at', sa.Double(), nullable=False),
        *_integers('interval_us', 'cpu_us', *_TIMES),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='host_time_buckets_host_id_fk'),
        sa.UniqueConstraint(
            'host_id', 'length_s', 'at',
            name='uniq_host_time_buckets0host_id0length_s0at'),
        **_OPTIONS)
    op.create_index('host_time_buckets_at_idx', 'host_time_buckets',
                    ['length_s', 'at'])


def _create(table: str, *columns: sa.Column[ty.Any]) -> None:
    op.create_table(
        table,
        sa.Column('id', _ID, primary_key=True),
        sa.Column('host_id', _ID, nullable=False),
        *_integers('batch'),
        sa.Column('at', sa.Double(), nullable=False),
        *columns,
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name=table + '_host_id_fk'),
        **_OPTIONS)
    op.create_index(table + '_host_id_idx', table, ['host_id', 'at'])
    op.create_index(table + '_batch_idx', table, ['host_id', 'batch'])
    op.create_index(table + '_at_idx', table, ['at'])


def _integers(*names: str) -> list[sa.Column[ty.Any]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False)
            for name in names]


def _each_chunk(table: str, names: ty.Sequence[str], limit: int,
                convert: ty.Callable[[ty.Sequence[ty.Any]], None]) -> None:
    source = sa.table(table, *map(sa.column, ('id', *names)))
    query = sa.select(source).order_by(source.c.id).limit(limit)
    last = 0
    while True:
        rows = op.get_bind().execute(query.where(source.c.id > last)).all()
        if not rows:
            return
        convert([row[1:] for row in rows])
        last = rows[-1][0]


def _pack(rows: ty.Sequence[ty.Any]) -> None:
    seconds = collections.defaultdict(list)
    for host_id, batch, *values in rows:
        seconds[host_id, batch, math.ceil(values[1])].append(values)
    op.get_bind().execute(
        _table('usage_seconds', 'host_id', 'batch', 'at', 'count',
               'samples').insert(),
        [{'host_id': host_id, 'batch': batch, 'at': float(second),
          'count': len(those), 'samples': json.dumps(
              those, separators=(',', ':'))}
         for (host_id, batch, second), samples in seconds.items()
         for start in range(0, len(samples), _MAX_SAMPLES)
         for those in (samples[start:start + _MAX_SAMPLES],)])


def _table(name: str, *columns: str) -> sa.TableClause:
    return sa.table(name, *map(sa.column, columns))


def downgrade() -> None:
    """Unpack the samples; what the former release did not know is lost."""
    for name in ('host_time_buckets', 'host_time_samples'):
        op.drop_table(name)
    for table in _BUCKETS:
        for name in _COUNTS:
            op.drop_column(table, name)
    op.create_table(
        'usage_samples',
        sa.Column('id', _ID, primary_key=True),
        sa.Column('host_id', _ID, nullable=False),
        sa.Column('instance_uuid', sa.String(36), nullable=False),
        sa.Column('at', sa.Double(), nullable=False),
        *_integers('interval_us', 'guest_us', 'wait_us'),
        sa.Column('promised_us', sa.BigInteger()),
        sa.Column('batch', sa.BigInteger(), nullable=False,
                  server_default=sa.text('0')),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='usage_samples_host_id_fk'),
        **_OPTIONS)
    for index, columns in (('instance_uuid', ['instance_uuid', 'at']),
                           ('host_id', ['host_id', 'at']),
                           ('batch', ['host_id', 'batch']), ('at', ['at'])):
        op.create_index('usage_samples_%s_idx' % index, 'usage_samples',
                        columns)
    _each_chunk('usage_seconds', ('host_id', 'batch', 'samples'),
                _PACKED_ROWS, _unpack)
    op.drop_table('usage_seconds')


def _unpack(rows: ty.Sequence[ty.Any]) -> None:
    insert = _table('usage_samples', 'host_id', 'batch', *_VALUES).insert()
    for host_id, batch, text in rows:
        op.get_bind().execute(insert, [
            {'host_id': host_id, 'batch': batch,
             **dict(zip(_VALUES, values, strict=False))}
            for values in json.loads(text)])

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

"""Sums of usage by minute and by hour."""

from alembic import op
import sqlalchemy as sa

revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
_OPTIONS = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4',
            'mysql_collate': 'utf8mb4_bin'}


def upgrade() -> None:
    """Number the batch of each sample, and create tables for sums.

    Samples that are there belong to batch 0, which is in no sum.
    """
    # With a default it is added in place.
    op.add_column('usage_samples', sa.Column(
        'batch', sa.BigInteger(), nullable=False,
        server_default=sa.text('0')))
    op.create_index('usage_samples_batch_idx', 'usage_samples',
                    ['host_id', 'batch'])
    op.create_table(
        'usage_folds',
        sa.Column('host_id', _ID, primary_key=True, autoincrement=False),
        sa.Column('batch', sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='usage_folds_host_id_fk'),
        **_OPTIONS)
    op.create_table(
        'usage_buckets',
        sa.Column('id', _ID, primary_key=True),
        sa.Column('host_id', _ID, nullable=False),
        sa.Column('instance_uuid', sa.String(36), nullable=False),
        *_sums(),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='usage_buckets_host_id_fk'),
        sa.UniqueConstraint(
            'host_id', 'length_s', 'at', 'instance_uuid',
            name='uniq_usage_buckets0host_id0length_s0at0instance_uuid'),
        **_OPTIONS)
    op.create_index('usage_buckets_instance_uuid_idx', 'usage_buckets',
                    ['instance_uuid', 'length_s', 'at'])
    op.create_index('usage_buckets_at_idx', 'usage_buckets',
                    ['length_s', 'at'])
    op.create_table(
        'host_usage_buckets',
        sa.Column('id', _ID, primary_key=True),
        sa.Column('host_id', _ID, nullable=False),
        sa.Column('instances', sa.BigInteger(), nullable=False),
        *_sums(),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='host_usage_buckets_host_id_fk'),
        sa.UniqueConstraint(
            'host_id', 'length_s', 'at',
            name='uniq_host_usage_buckets0host_id0length_s0at'),
        **_OPTIONS)
    op.create_index('host_usage_buckets_at_idx', 'host_usage_buckets',
                    ['length_s', 'at'])


def _sums() -> list[sa.Column[object]]:
    return [
        sa.Column('length_s', sa.BigInteger(), nullable=False),
        sa.Column('at', sa.Double(), nullable=False),
        sa.Column('samples', sa.BigInteger(), nullable=False),
        sa.Column('first_at', sa.Double(), nullable=False),
        sa.Column('last_at', sa.Double(), nullable=False),
        sa.Column('interval_us', sa.BigInteger(), nullable=False),
        sa.Column('guest_us', sa.BigInteger(), nullable=False),
        sa.Column('wait_us', sa.BigInteger(), nullable=False),
        sa.Column('promised_us', sa.BigInteger()),
        sa.Column('promised_guest_us', sa.BigInteger(), nullable=False),
    ]


def downgrade() -> None:
    """Drop them."""
    for name in ('host_usage_buckets', 'usage_buckets', 'usage_folds'):
        op.drop_table(name)
    # SQLite drops no column that has an index.
    op.drop_index('usage_samples_batch_idx', 'usage_samples')
    op.drop_column('usage_samples', 'batch')

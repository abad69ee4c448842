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

"""Counters, hosts, instances, reservations, overrides, events, usage."""

from alembic import op
import sqlalchemy as sa

revision = '0001'
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
_JSON = sa.JSON(none_as_null=True)
_OPTIONS = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4',
            'mysql_collate': 'utf8mb4_bin'}


def upgrade() -> None:
    """Create the tables."""
    counters = op.create_table(
        'counters',
        sa.Column('name', sa.String(64), primary_key=True),
        sa.Column('value', sa.BigInteger(), nullable=False),
        **_OPTIONS)
    op.bulk_insert(counters, [{'name': 'override_generation', 'value': 0}])
    op.create_table(
        'hosts',
        sa.Column('id', _ID, primary_key=True),
        sa.Column('name', sa.String(255), nullable=False),
        sa.Column('last_batch', sa.BigInteger(), nullable=False),
        sa.Column('reported_at', sa.Double()),
        sa.Column('received_at', sa.Double()),
        sa.Column('listed_at', sa.Double()),
        sa.Column('overrides_generation', sa.BigInteger(), nullable=False),
        sa.Column('info', _JSON),
        sa.UniqueConstraint('name', name='uniq_hosts0name'),
        **_OPTIONS)
    op.create_table(
        'overrides',
        sa.Column('instance_uuid', sa.String(36), primary_key=True),
        sa.Column('generation', sa.BigInteger(), nullable=False),
        sa.Column('runtime_us', sa.BigInteger(), nullable=False),
        sa.Column('period_us', sa.BigInteger(), nullable=False),
        sa.Column('mode', sa.String(64), nullable=False),
        sa.Column('backend', sa.String(64)),
        sa.Column('created_at', sa.Double(), nullable=False),
        sa.Column('updated_at', sa.Double(), nullable=False),
        **_OPTIONS)
    op.create_table(
        'instances',
        sa.Column('id', _ID, primary_key=True),
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('host_id', _ID, nullable=False),
        sa.Column('name', sa.String(255), nullable=False),
        sa.Column('vcpus', sa.Integer(), nullable=False),
        sa.Column('present', sa.Boolean(), nullable=False),
        sa.Column('arrived_at', sa.Double(), nullable=False),
        sa.Column('left_at', sa.Double()),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='instances_host_id_fk'),
        sa.UniqueConstraint(
            'uuid', 'host_id', name='uniq_instances0uuid0host_id'),
        **_OPTIONS)
    op.create_index('instances_host_id_idx', 'instances', ['host_id'])
    op.create_index('instances_left_at_idx', 'instances', ['left_at'])
    op.create_table(
        'reservations',
        sa.Column('instance_id', _ID, primary_key=True, autoincrement=False),
        sa.Column('source', sa.String(64), nullable=False),
        sa.Column('state', sa.String(64), nullable=False),
        sa.Column('vcpus', sa.Integer(), nullable=False),
        sa.Column('since', sa.Double(), nullable=False),
        sa.Column('generation', sa.BigInteger(), nullable=False),
        sa.Column('runtime_us', sa.BigInteger()),
        sa.Column('period_us', sa.BigInteger()),
        sa.Column('mode', sa.String(64)),
        sa.Column('backend', sa.String(64)),
        sa.Column('enforced_backend', sa.String(64)),
        sa.Column('enforced_runtime_us', sa.BigInteger()),
        sa.Column('enforced_period_us', sa.BigInteger()),
        sa.Column('attested_at', sa.Double()),
        sa.Column('code', sa.String(64)),
        sa.Column('detail', sa.Text()),
        sa.Column('figures', _JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ['instance_id'], ['instances.id'], ondelete='CASCADE',
            name='reservations_instance_id_fk'),
        **_OPTIONS)
    op.create_table(
        'events',
        sa.Column('id', _ID, primary_key=True),
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('host_id', _ID, nullable=False),
        sa.Column('instance_uuid', sa.String(36)),
        sa.Column('at', sa.Double(), nullable=False),
        sa.Column('code', sa.String(64), nullable=False),
        sa.Column('severity', sa.String(64), nullable=False),
        sa.Column('detail', sa.Text(), nullable=False),
        sa.Column('figures', _JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='events_host_id_fk'),
        sa.UniqueConstraint('uuid', name='uniq_events0uuid'),
        **_OPTIONS)
    op.create_index('events_at_idx', 'events', ['at', 'id'])
    op.create_index(
        'events_instance_uuid_idx', 'events', ['instance_uuid', 'at'])
    op.create_index('events_host_id_idx', 'events', ['host_id', 'at'])
    op.create_table(
        'usage_samples',
        sa.Column('id', _ID, primary_key=True),
        sa.Column('host_id', _ID, nullable=False),
        sa.Column('instance_uuid', sa.String(36), nullable=False),
        sa.Column('at', sa.Double(), nullable=False),
        sa.Column('interval_us', sa.BigInteger(), nullable=False),
        sa.Column('guest_us', sa.BigInteger(), nullable=False),
        sa.Column('wait_us', sa.BigInteger(), nullable=False),
        sa.Column('promised_us', sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='usage_samples_host_id_fk'),
        **_OPTIONS)
    op.create_index(
        'usage_samples_instance_uuid_idx', 'usage_samples',
        ['instance_uuid', 'at'])
    op.create_index(
        'usage_samples_host_id_idx', 'usage_samples', ['host_id', 'at'])
    op.create_index('usage_samples_at_idx', 'usage_samples', ['at'])


def downgrade() -> None:
    """Drop the tables."""
    for name in ('usage_samples', 'events', 'reservations', 'instances',
                 'overrides', 'hosts', 'counters'):
        op.drop_table(name)

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

"""How instances stand with ballooning, what was ordered, what became of it."""

from alembic import op
import sqlalchemy as sa

revision = '0009'
down_revision = '0008'
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
_OPTIONS = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4',
            'mysql_collate': 'utf8mb4_bin'}


def upgrade() -> None:
    """Create the tables; agents fill them with their next full reports."""
    op.create_table(
        'balloons',
        sa.Column('instance_id', _ID, primary_key=True,
                  autoincrement=False),
        sa.Column('state', sa.String(64), nullable=False),
        sa.Column('auto', sa.Boolean(), nullable=False),
        sa.Column('dry_run', sa.Boolean(), nullable=False),
        sa.Column('pinned', sa.Boolean(), nullable=False),
        sa.Column('guest_answers', sa.Boolean()),
        sa.Column('vcpus', sa.BigInteger(), nullable=False),
        sa.Column('online_vcpus', sa.BigInteger(), nullable=False),
        sa.Column('min_vcpus', sa.BigInteger(), nullable=False),
        sa.Column('floor_vcpus', sa.BigInteger(), nullable=False),
        sa.Column('cpus', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('cause', sa.Text()),
        sa.Column('since', sa.Double(), nullable=False),
        sa.Column('not_before', sa.Double()),
        sa.Column('failures', sa.BigInteger(), nullable=False),
        sa.Column('generation', sa.BigInteger(), nullable=False),
        sa.Column('order_state', sa.String(64)),
        sa.Column('code', sa.String(64)),
        sa.Column('detail', sa.Text()),
        sa.ForeignKeyConstraint(
            ['instance_id'], ['instances.id'],
            name='balloons_instance_id_fk', ondelete='CASCADE'),
        **_OPTIONS)
    op.create_table(
        'balloon_orders',
        sa.Column('instance_uuid', sa.String(36), primary_key=True),
        sa.Column('generation', sa.BigInteger(), nullable=False),
        sa.Column('target_vcpus', sa.BigInteger()),
        sa.Column('frozen', sa.Boolean(), nullable=False),
        sa.Column('created_at', sa.Double(), nullable=False),
        sa.Column('updated_at', sa.Double(), nullable=False),
        **_OPTIONS)
    op.create_table(
        'balloon_changes',
        sa.Column('id', _ID, primary_key=True),
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('host_id', _ID, nullable=False),
        sa.Column('instance_uuid', sa.String(36), nullable=False),
        sa.Column('started_at', sa.Double(), nullable=False),
        sa.Column('ended_at', sa.Double()),
        sa.Column('vcpus', sa.BigInteger(), nullable=False),
        sa.Column('before_vcpus', sa.BigInteger(), nullable=False),
        sa.Column('online_vcpus', sa.BigInteger(), nullable=False),
        sa.Column('manual', sa.Boolean(), nullable=False),
        sa.Column('cause', sa.Text(), nullable=False),
        sa.Column('took_ms', sa.BigInteger()),
        sa.Column('outcome', sa.String(64)),
        sa.Column('detail', sa.Text()),
        sa.Column('told_at', sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='balloon_changes_host_id_fk'),
        sa.UniqueConstraint('uuid', name='uniq_balloon_changes0uuid'),
        **_OPTIONS)
    for name, columns in (
            ('started_at', ['started_at', 'id']),
            ('instance_uuid', ['instance_uuid', 'started_at']),
            ('host_id', ['host_id', 'started_at']),
            ('told_at', ['told_at'])):
        op.create_index('balloon_changes_%s_idx' % name, 'balloon_changes',
                        columns)


def downgrade() -> None:
    """Drop them."""
    for name in ('balloon_changes', 'balloon_orders', 'balloons'):
        op.drop_table(name)

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

"""What schedulers are told of hosts."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0004'
down_revision = '0003'
branch_labels = None
depends_on = None

_COUNTER = 'snapshot_version'


def upgrade() -> None:
    """Create the table, empty: the collector fills it."""
    op.create_table(
        'snapshot_hosts',
        sa.Column('host_id', sa.BigInteger().with_variant(
            sa.Integer(), 'sqlite'), primary_key=True, autoincrement=False),
        sa.Column('name', sa.String(255), nullable=False),
        sa.Column('version', sa.BigInteger(), nullable=False),
        sa.Column('removed', sa.Boolean(), nullable=False),
        sa.Column('admitted_mcpu', sa.BigInteger(), nullable=False),
        sa.Column('facts', sa.Text(), nullable=False),
        sa.Column('certificates', sa.Text().with_variant(
            mysql.MEDIUMTEXT(), 'mysql', 'mariadb'), nullable=False),
        sa.Column('measured', sa.JSON(none_as_null=True)),
        sa.Column('certified', sa.Boolean(), nullable=False),
        sa.Column('confidence', sa.Double(), nullable=False),
        sa.Column('prices_ns', sa.Text()),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='snapshot_hosts_host_id_fk'),
        sa.UniqueConstraint('version', name='uniq_snapshot_hosts0version'),
        mysql_engine='InnoDB', mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin')
    op.bulk_insert(
        sa.table('counters', sa.column('name', sa.String),
                 sa.column('value', sa.BigInteger)),
        [{'name': _COUNTER, 'value': 0}])


def downgrade() -> None:
    """Drop it."""
    op.drop_table('snapshot_hosts')
    counters = sa.table('counters', sa.column('name', sa.String))
    op.execute(counters.delete().where(counters.c.name == _COUNTER))

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

"""What neighbours of a workload class cost each other."""

from alembic import op
import sqlalchemy as sa

revision = '0008'
down_revision = '0007'
branch_labels = None
depends_on = None

_COUNTER = 'slowdowns_at'


def upgrade() -> None:
    """Make room for it; agents tell of classes with their next list."""
    op.add_column('instances', sa.Column('workload_class', sa.String(64)))
    op.create_table(
        'slowdowns',
        sa.Column('victim', sa.String(64), primary_key=True),
        sa.Column('neighbour', sa.String(64), primary_key=True),
        sa.Column('slowdown', sa.Double(), nullable=False),
        sa.Column('samples', sa.Double(), nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin')
    op.bulk_insert(
        sa.table('counters', sa.column('name', sa.String),
                 sa.column('value', sa.BigInteger)),
        [{'name': _COUNTER, 'value': 0}])


def downgrade() -> None:
    """Drop it."""
    op.drop_table('slowdowns')
    op.drop_column('instances', 'workload_class')
    counters = sa.table('counters', sa.column('name', sa.String))
    op.execute(counters.delete().where(counters.c.name == _COUNTER))

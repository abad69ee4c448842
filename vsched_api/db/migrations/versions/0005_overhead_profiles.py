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

"""What the host's work for I/O was found to cost."""

from alembic import op
import sqlalchemy as sa

revision = '0005'
down_revision = '0004'
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
_JSON = sa.JSON(none_as_null=True)
_OPTIONS = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4',
            'mysql_collate': 'utf8mb4_bin'}


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        'overhead_profiles',
        sa.Column('id', _ID, primary_key=True),
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('host_id', _ID, nullable=False),
        sa.Column('version', sa.BigInteger(), nullable=False),
        sa.Column('source', sa.String(64), nullable=False),
        sa.Column('started_at', sa.Double(), nullable=False),
        sa.Column('finished_at', sa.Double(), nullable=False),
        sa.Column('kernel', sa.String(255), nullable=False),
        sa.Column('tick_us', sa.BigInteger(), nullable=False),
        sa.Column('cpus', sa.BigInteger(), nullable=False),
        sa.Column('load', sa.Double(), nullable=False),
        sa.Column('quick', sa.Boolean(), nullable=False),
        sa.Column('complete', sa.Boolean(), nullable=False),
        sa.Column('good', sa.Boolean(), nullable=False),
        sa.Column('r2', sa.Double(), nullable=False),
        sa.Column('residual_ns', sa.Double(), nullable=False),
        sa.Column('n', sa.BigInteger(), nullable=False),
        sa.Column('features', _JSON, nullable=False),
        sa.Column('prices', _JSON, nullable=False),
        sa.Column('points', _JSON, nullable=False),
        sa.Column('notes', _JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='overhead_profiles_host_id_fk'),
        sa.UniqueConstraint('uuid', name='uniq_overhead_profiles0uuid'),
        **_OPTIONS)
    op.create_index('overhead_profiles_host_id_idx', 'overhead_profiles',
                    ['host_id', 'source', 'id'])


def downgrade() -> None:
    """Drop it."""
    op.drop_table('overhead_profiles')

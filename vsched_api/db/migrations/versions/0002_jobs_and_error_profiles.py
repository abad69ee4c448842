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

"""Jobs, error profiles and their points."""

from alembic import op
import sqlalchemy as sa

revision = '0002'
down_revision = '0001'
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
_JSON = sa.JSON(none_as_null=True)
_OPTIONS = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4',
            'mysql_collate': 'utf8mb4_bin'}


def upgrade() -> None:
    """Create the tables, and count changes of each host's jobs."""
    # With a default it is added in place: SQLite would otherwise copy the
    # table, and drop the one that others refer to.
    op.add_column('hosts', sa.Column(
        'jobs_generation', sa.BigInteger(), nullable=False,
        server_default=sa.text('0')))
    op.create_table(
        'jobs',
        sa.Column('id', _ID, primary_key=True),
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('host_id', _ID, nullable=False),
        sa.Column('kind', sa.String(64), nullable=False),
        sa.Column('wanted', sa.String(64), nullable=False),
        sa.Column('state', sa.String(64), nullable=False),
        sa.Column('attempt', sa.BigInteger(), nullable=False),
        sa.Column('parameters', _JSON, nullable=False),
        sa.Column('progress_ppm', sa.BigInteger(), nullable=False),
        sa.Column('detail', sa.Text(), nullable=False),
        sa.Column('created_at', sa.Double(), nullable=False),
        sa.Column('updated_at', sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='jobs_host_id_fk'),
        sa.UniqueConstraint('uuid', name='uniq_jobs0uuid'),
        **_OPTIONS)
    op.create_index('jobs_host_id_idx', 'jobs', ['host_id', 'state'])
    op.create_index('jobs_updated_at_idx', 'jobs', ['updated_at'])
    op.create_table(
        'error_profiles',
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
        sa.Column('features', _JSON, nullable=False),
        sa.Column('notes', _JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='error_profiles_host_id_fk'),
        sa.UniqueConstraint('uuid', name='uniq_error_profiles0uuid'),
        **_OPTIONS)
    op.create_index('error_profiles_host_id_idx', 'error_profiles',
                    ['host_id', 'source', 'id'])
    op.create_table(
        'error_points',
        sa.Column('id', _ID, primary_key=True),
        sa.Column('profile_id', _ID, nullable=False),
        sa.Column('backend', sa.String(64), nullable=False),
        sa.Column('period_us', sa.BigInteger(), nullable=False),
        sa.Column('share_ppm', sa.BigInteger(), nullable=False),
        sa.Column('contenders', sa.BigInteger(), nullable=False),
        sa.Column('probe', sa.String(64), nullable=False),
        sa.Column('window_us', sa.BigInteger(), nullable=False),
        sa.Column('n', sa.BigInteger(), nullable=False),
        sa.Column('mean_ppm', sa.BigInteger(), nullable=False),
        sa.Column('min_ppm', sa.BigInteger(), nullable=False),
        sa.Column('max_ppm', sa.BigInteger(), nullable=False),
        sa.Column('quantiles_ppm', _JSON, nullable=False),
        sa.Column('abs_p50_ppm', sa.BigInteger(), nullable=False),
        sa.Column('abs_p95_ppm', sa.BigInteger(), nullable=False),
        sa.Column('abs_p99_ppm', sa.BigInteger(), nullable=False),
        sa.Column('long_mean_ppm', sa.BigInteger(), nullable=False),
        sa.Column('counts', _JSON, nullable=False),
        sa.Column('lowest_ppm', _JSON, nullable=False),
        sa.Column('largest_ppm', _JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ['profile_id'], ['error_profiles.id'], ondelete='CASCADE',
            name='error_points_profile_id_fk'),
        **_OPTIONS)
    op.create_index('error_points_profile_id_idx', 'error_points',
                    ['profile_id', 'id'])


def downgrade() -> None:
    """Drop them."""
    for name in ('error_points', 'error_profiles', 'jobs'):
        op.drop_table(name)
    op.drop_column('hosts', 'jobs_generation')

# SPDX-License-Identifier: Apache-2.0

"""Nova's names of instances: server, project and flavor.

Collectors and REST services of earlier releases use none of the columns. They
are empty until the agent of the host lists its instances again, as it does
when it starts.
"""

from alembic import op
import sqlalchemy as sa

revision = '0006_servers'
down_revision = '0005_job_progress'
branch_labels = None
depends_on = None

_COLUMNS = (
    sa.Column('server_name', sa.String(255)),
    sa.Column('project_id', sa.String(64)),
    sa.Column('flavor_name', sa.String(255)),
)
_INDEXES = {
    'instances_project_id_idx': ['project_id', 'uuid'],
    'instances_server_name_idx': ['server_name', 'uuid'],
}


def upgrade() -> None:
    """Add the columns and the indexes."""
    for column in _COLUMNS:
        op.add_column('instances', column.copy())
    for name, columns in _INDEXES.items():
        op.create_index(name, 'instances', columns)


def downgrade() -> None:
    """Drop the indexes and the columns."""
    for name in _INDEXES:
        op.drop_index(name, 'instances')
    for column in _COLUMNS:
        op.drop_column('instances', column.name)

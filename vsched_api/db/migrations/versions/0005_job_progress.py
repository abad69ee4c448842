# SPDX-License-Identifier: Apache-2.0

"""When an attempt of a job began, and from where its progress is measured.

Collectors and REST services of earlier releases use none of the columns.
"""

from alembic import op
import sqlalchemy as sa

revision = '0005_job_progress'
down_revision = '0004_communication'
branch_labels = None
depends_on = None

_COLUMNS = (
    sa.Column('started_at', sa.Double()),
    sa.Column('progress_from_at', sa.Double()),
    sa.Column('progress_from_ppm', sa.BigInteger()),
)


def upgrade() -> None:
    """Add the columns."""
    for column in _COLUMNS:
        op.add_column('jobs', column.copy())


def downgrade() -> None:
    """Drop the columns."""
    for column in _COLUMNS:
        op.drop_column('jobs', column.name)

# SPDX-License-Identifier: Apache-2.0

"""How finely the periods of reservations are divided."""

from alembic import op
import sqlalchemy as sa

revision = '0004_communication'
down_revision = '0003_executions'
branch_labels = None
depends_on = None

_COLUMN = sa.Column('communication', sa.JSON(none_as_null=True))


def upgrade() -> None:
    """Add the column."""
    op.add_column('reservations', _COLUMN.copy())


def downgrade() -> None:
    """Drop the column."""
    op.drop_column('reservations', _COLUMN.name)

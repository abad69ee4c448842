# SPDX-License-Identifier: Apache-2.0

"""${message}."""

from alembic import op
import sqlalchemy as sa
${imports if imports else ''}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    """Apply the change."""
    ${upgrades if upgrades else 'pass'}


def downgrade() -> None:
    """Undo it."""
    ${downgrades if downgrades else 'pass'}

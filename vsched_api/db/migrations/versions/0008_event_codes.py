# SPDX-License-Identifier: Apache-2.0

"""An index for lists of the events with a code."""

from alembic import op

revision = '0008_event_codes'
down_revision = '0007_flavors'
branch_labels = None
depends_on = None

_NAME = 'events_code_idx'


def upgrade() -> None:
    """Add the index."""
    op.create_index(_NAME, 'events', ['code', 'at', 'id'])


def downgrade() -> None:
    """Drop the index."""
    op.drop_index(_NAME, 'events')

# SPDX-License-Identifier: Apache-2.0

"""An index for lists of the instances of a flavor."""

from alembic import op

revision = '0007_flavors'
down_revision = '0006_servers'
branch_labels = None
depends_on = None

_NAME = 'instances_flavor_name_idx'


def upgrade() -> None:
    """Add the index."""
    op.create_index(_NAME, 'instances', ['flavor_name', 'uuid'])


def downgrade() -> None:
    """Drop the index."""
    op.drop_index(_NAME, 'instances')

# SPDX-License-Identifier: Apache-2.0

"""Add executions to samples of usage and their sums.

No table is rewritten: the columns are empty or 0 in rows that exist, and in
those that a collector of an earlier release stores later.
"""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0003_executions'
down_revision = '0002_verifications'
branch_labels = None
depends_on = None

_LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')

_SUMS = ('usage_buckets', 'host_usage_buckets')
_COUNTS = (
    'counted_samples',
    'executions',
    'emulator_wakeups',
    'emulator_wait_us',
    'iothread_wakeups',
    'iothread_wait_us',
    'vhost_wakeups',
    'vhost_wait_us',
)


def upgrade() -> None:
    """Add the columns."""
    op.add_column('usage_seconds', sa.Column('executions', _LONG_TEXT))
    for table in _SUMS:
        for name in _COUNTS:
            op.add_column(
                table,
                sa.Column(
                    name,
                    sa.BigInteger(),
                    nullable=False,
                    server_default=sa.text('0'),
                ),
            )


def downgrade() -> None:
    """Drop them."""
    op.drop_column('usage_seconds', 'executions')
    for table in _SUMS:
        for name in _COUNTS:
            op.drop_column(table, name)

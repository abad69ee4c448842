# SPDX-License-Identifier: Apache-2.0

"""Comparisons of hosts' reports with Nova and placement.

Collectors and REST services of the initial release use neither the table nor
the column.
"""

from alembic import op
import sqlalchemy as sa

revision = '0002_verifications'
down_revision = '0001_initial'
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table and the column."""
    op.create_table(
        'host_verifications',
        sa.Column(
            'host_id',
            sa.BigInteger().with_variant(sa.Integer(), 'sqlite'),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column('checked_at', sa.Double(), nullable=False),
        sa.Column('cpus', sa.BigInteger()),
        sa.Column('reported_mcpu', sa.BigInteger()),
        sa.Column('contradictions', sa.JSON(none_as_null=True)),
        # Collectors of the initial release delete hosts, and not these rows.
        sa.ForeignKeyConstraint(
            ['host_id'],
            ['hosts.id'],
            name='host_verifications_host_id_fk',
            ondelete='CASCADE',
        ),
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
    )
    op.add_column('instances', sa.Column('contradicted_at', sa.Double()))


def downgrade() -> None:
    """Drop the column and the table."""
    # Not in a batch: that makes SQLite copy and drop the table, which deletes
    # the rows that refer to it.
    op.drop_column('instances', 'contradicted_at')
    op.drop_table('host_verifications')

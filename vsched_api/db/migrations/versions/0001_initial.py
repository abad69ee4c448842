# SPDX-License-Identifier: Apache-2.0

"""All tables of the initial release."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0001_initial'
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
_BOOLEAN, _DOUBLE, _INTEGER = sa.Boolean(), sa.Double(), sa.BigInteger()
_NAME, _UUID, _WORD = sa.String(255), sa.String(36), sa.String(64)
_JSON, _TEXT = sa.JSON(none_as_null=True), sa.Text()
_LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')

_TABLES = (
    'counters',
    'hosts',
    'host_keys',
    'snapshot_hosts',
    'instances',
    'reservations',
    'overrides',
    'events',
    'balloons',
    'balloon_orders',
    'balloon_changes',
    'jobs',
    'error_profiles',
    'error_points',
    'overhead_profiles',
    'usage_seconds',
    'usage_folds',
    'usage_buckets',
    'host_usage_buckets',
    'slowdowns',
    'host_time_samples',
    'host_time_buckets',
)


def _table(name, *parts):
    op.create_table(
        name,
        *parts,
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin',
    )


def _index(table, name, *columns):
    op.create_index('%s_%s_idx' % (table, name), table, columns)


def _id():
    return sa.Column('id', _ID, primary_key=True)


def _uuid(table):
    return [
        *_required(_UUID, 'uuid'),
        sa.UniqueConstraint('uuid', name='uniq_%s0uuid' % table),
    ]


def _of_host(table):
    return [
        *_required(_ID, 'host_id'),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='%s_host_id_fk' % table
        ),
    ]


def _required(kind, *names):
    return [sa.Column(name, kind, nullable=False) for name in names]


def _optional(kind, *names):
    return [sa.Column(name, kind) for name in names]


def _counts(*names):
    return [
        sa.Column(name, _INTEGER, nullable=False, server_default=sa.text('0'))
        for name in names
    ]


def upgrade() -> None:
    """Create the tables."""
    _create_hosts()
    _create_instances()
    _create_balloons()
    _create_profiles()
    _create_usage()
    _create_host_time()
    counters = sa.table(
        'counters',
        sa.column('name', sa.String),
        sa.column('value', sa.BigInteger),
    )
    op.bulk_insert(
        counters,
        [
            {'name': name, 'value': 0}
            for name in (
                'override_generation',
                'snapshot_version',
                'slowdowns_at',
            )
        ],
    )


def _create_hosts() -> None:
    _table(
        'counters',
        sa.Column('name', _WORD, primary_key=True),
        *_required(_INTEGER, 'value'),
    )
    _table(
        'hosts',
        _id(),
        *_required(_NAME, 'name'),
        *_required(_INTEGER, 'last_batch'),
        *_optional(_DOUBLE, 'reported_at', 'received_at', 'listed_at'),
        *_required(_INTEGER, 'overrides_generation'),
        *_counts('jobs_generation'),
        *_optional(_JSON, 'info'),
        *_optional(_WORD, 'epoch'),
        *_counts('batch_offset'),
        *_optional(_JSON, 'replaced_epochs'),
        *_optional(_DOUBLE, 'clock_skew_s', 'deleted_at'),
        sa.UniqueConstraint('name', name='uniq_hosts0name'),
    )
    _table(
        'host_keys',
        sa.Column('host', _NAME, primary_key=True),
        *_required(_INTEGER, 'serial', 'lowest_serial'),
        *_required(_DOUBLE, 'rotated_at'),
    )
    _table(
        'snapshot_hosts',
        sa.Column('host_id', _ID, primary_key=True, autoincrement=False),
        *_required(_NAME, 'name'),
        *_required(_INTEGER, 'version'),
        *_required(_BOOLEAN, 'removed'),
        *_required(_INTEGER, 'admitted_mcpu'),
        *_required(_TEXT, 'facts'),
        *_required(_LONG_TEXT, 'certificates'),
        *_optional(_JSON, 'measured'),
        *_required(_BOOLEAN, 'certified'),
        *_required(_DOUBLE, 'confidence'),
        *_optional(_TEXT, 'prices_ns'),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='snapshot_hosts_host_id_fk'
        ),
        sa.UniqueConstraint('version', name='uniq_snapshot_hosts0version'),
    )


def _create_instances() -> None:
    _table(
        'instances',
        _id(),
        *_required(_UUID, 'uuid'),
        *_of_host('instances'),
        *_required(_NAME, 'name'),
        *_required(sa.Integer(), 'vcpus'),
        *_optional(_WORD, 'workload_class'),
        *_required(_BOOLEAN, 'present'),
        *_required(_DOUBLE, 'arrived_at'),
        *_optional(_DOUBLE, 'left_at'),
        sa.UniqueConstraint(
            'uuid', 'host_id', name='uniq_instances0uuid0host_id'
        ),
    )
    _index('instances', 'host_id', 'host_id')
    _index('instances', 'left_at', 'left_at')
    _table(
        'reservations',
        sa.Column('instance_id', _ID, primary_key=True, autoincrement=False),
        *_required(_WORD, 'source', 'state'),
        *_required(sa.Integer(), 'vcpus'),
        *_required(_DOUBLE, 'since'),
        *_required(_INTEGER, 'generation'),
        *_optional(_INTEGER, 'runtime_us', 'period_us'),
        *_optional(_WORD, 'mode', 'backend', 'enforced_backend'),
        *_optional(_INTEGER, 'enforced_runtime_us', 'enforced_period_us'),
        *_optional(_DOUBLE, 'attested_at'),
        *_optional(_WORD, 'code'),
        *_optional(_TEXT, 'detail'),
        *_required(_JSON, 'figures'),
        *_optional(_JSON, 'io'),
        sa.ForeignKeyConstraint(
            ['instance_id'],
            ['instances.id'],
            name='reservations_instance_id_fk',
            ondelete='CASCADE',
        ),
    )
    _table(
        'overrides',
        sa.Column('instance_uuid', _UUID, primary_key=True),
        *_required(_INTEGER, 'generation', 'runtime_us', 'period_us'),
        *_required(_WORD, 'mode'),
        *_optional(_WORD, 'backend'),
        *_optional(_JSON, 'specs'),
        *_required(_DOUBLE, 'created_at', 'updated_at'),
        *_optional(_NAME, 'user_id', 'project_id'),
        *_optional(_WORD, 'request_id'),
    )
    _table(
        'events',
        _id(),
        *_uuid('events'),
        *_of_host('events'),
        *_optional(_UUID, 'instance_uuid'),
        *_required(_DOUBLE, 'at'),
        *_required(_WORD, 'code', 'severity'),
        *_required(_TEXT, 'detail'),
        *_required(_JSON, 'figures'),
    )
    _index('events', 'at', 'at', 'id')
    _index('events', 'host_id', 'host_id', 'at')
    _index('events', 'instance_uuid', 'instance_uuid', 'at')


def _create_balloons() -> None:
    _table(
        'balloons',
        sa.Column('instance_id', _ID, primary_key=True, autoincrement=False),
        *_required(_WORD, 'state'),
        *_required(_BOOLEAN, 'auto', 'dry_run', 'pinned'),
        *_optional(_BOOLEAN, 'guest_answers'),
        *_required(
            _INTEGER, 'vcpus', 'online_vcpus', 'min_vcpus', 'floor_vcpus'
        ),
        *_required(_JSON, 'cpus'),
        *_optional(_TEXT, 'cause'),
        *_required(_DOUBLE, 'since'),
        *_optional(_DOUBLE, 'not_before'),
        *_required(_INTEGER, 'failures', 'generation'),
        *_optional(_WORD, 'order_state', 'code'),
        *_optional(_TEXT, 'detail'),
        sa.ForeignKeyConstraint(
            ['instance_id'],
            ['instances.id'],
            name='balloons_instance_id_fk',
            ondelete='CASCADE',
        ),
    )
    _table(
        'balloon_orders',
        sa.Column('instance_uuid', _UUID, primary_key=True),
        *_required(_INTEGER, 'generation'),
        *_optional(_INTEGER, 'target_vcpus'),
        *_required(_BOOLEAN, 'frozen'),
        *_required(_DOUBLE, 'created_at', 'updated_at'),
        *_optional(_NAME, 'user_id', 'project_id'),
        *_optional(_WORD, 'request_id'),
    )
    _table(
        'balloon_changes',
        _id(),
        *_uuid('balloon_changes'),
        *_of_host('balloon_changes'),
        *_required(_UUID, 'instance_uuid'),
        *_required(_DOUBLE, 'started_at'),
        *_optional(_DOUBLE, 'ended_at'),
        *_required(_INTEGER, 'vcpus', 'before_vcpus', 'online_vcpus'),
        *_required(_BOOLEAN, 'manual'),
        *_required(_TEXT, 'cause'),
        *_optional(_INTEGER, 'took_ms'),
        *_optional(_WORD, 'outcome'),
        *_optional(_TEXT, 'detail'),
        *_required(_DOUBLE, 'told_at'),
    )
    _index('balloon_changes', 'host_id', 'host_id', 'started_at')
    _index('balloon_changes', 'instance_uuid', 'instance_uuid', 'started_at')
    _index('balloon_changes', 'started_at', 'started_at', 'id')
    _index('balloon_changes', 'told_at', 'told_at')


def _profile(table):
    return [
        _id(),
        *_uuid(table),
        *_of_host(table),
        *_required(_INTEGER, 'version'),
        *_required(_WORD, 'source'),
        *_required(_DOUBLE, 'started_at', 'finished_at', 'load'),
        *_required(_NAME, 'kernel'),
        *_required(_INTEGER, 'tick_us', 'cpus'),
        *_required(_BOOLEAN, 'quick', 'complete'),
        *_required(_JSON, 'features', 'notes'),
    ]


def _create_profiles() -> None:
    _table(
        'jobs',
        _id(),
        *_uuid('jobs'),
        *_of_host('jobs'),
        *_required(_WORD, 'kind', 'wanted', 'state'),
        *_required(_INTEGER, 'attempt'),
        *_required(_JSON, 'parameters'),
        *_required(_INTEGER, 'progress_ppm'),
        *_required(_TEXT, 'detail'),
        *_required(_DOUBLE, 'created_at', 'updated_at'),
    )
    _index('jobs', 'host_id', 'host_id', 'state')
    _index('jobs', 'updated_at', 'updated_at')
    _table('error_profiles', *_profile('error_profiles'))
    _index('error_profiles', 'host_id', 'host_id', 'source', 'id')
    _table(
        'error_points',
        _id(),
        *_required(_ID, 'profile_id'),
        *_required(_WORD, 'backend'),
        *_required(_INTEGER, 'period_us', 'share_ppm', 'contenders'),
        *_required(_WORD, 'probe'),
        *_required(
            _INTEGER, 'window_us', 'n', 'mean_ppm', 'min_ppm', 'max_ppm'
        ),
        *_required(_JSON, 'quantiles_ppm'),
        *_required(
            _INTEGER,
            'abs_p50_ppm',
            'abs_p95_ppm',
            'abs_p99_ppm',
            'long_mean_ppm',
        ),
        *_required(_JSON, 'counts', 'lowest_ppm', 'largest_ppm'),
        sa.ForeignKeyConstraint(
            ['profile_id'],
            ['error_profiles.id'],
            name='error_points_profile_id_fk',
            ondelete='CASCADE',
        ),
    )
    _index('error_points', 'profile_id', 'profile_id', 'id')
    _table(
        'overhead_profiles',
        *_profile('overhead_profiles'),
        *_required(_BOOLEAN, 'good'),
        *_required(_DOUBLE, 'r2', 'residual_ns'),
        *_required(_INTEGER, 'n'),
        *_required(_JSON, 'prices', 'points'),
    )
    _index('overhead_profiles', 'host_id', 'host_id', 'source', 'id')


def _sums():
    return [
        *_required(
            _INTEGER,
            'length_s',
            'samples',
            'interval_us',
            'guest_us',
            'wait_us',
            'promised_guest_us',
        ),
        *_required(_DOUBLE, 'at', 'first_at', 'last_at'),
        *_optional(_INTEGER, 'promised_us'),
        *_counts(
            'direct_us',
            'direct_wait_us',
            'shared_us',
            'wakeups',
            'net_rx_packets',
            'net_tx_packets',
            'disk_read_requests',
            'disk_write_requests',
        ),
    ]


def _create_usage() -> None:
    _table(
        'usage_seconds',
        _id(),
        *_of_host('usage_seconds'),
        *_required(_INTEGER, 'batch'),
        *_required(_DOUBLE, 'at'),
        *_required(_INTEGER, 'count'),
        *_required(_LONG_TEXT, 'samples'),
    )
    _index('usage_seconds', 'at', 'at')
    _index('usage_seconds', 'batch', 'host_id', 'batch')
    _index('usage_seconds', 'host_id', 'host_id', 'at')
    _table(
        'usage_folds',
        sa.Column('host_id', _ID, primary_key=True, autoincrement=False),
        *_required(_INTEGER, 'batch'),
        sa.ForeignKeyConstraint(
            ['host_id'], ['hosts.id'], name='usage_folds_host_id_fk'
        ),
    )
    _table(
        'usage_buckets',
        _id(),
        *_of_host('usage_buckets'),
        *_required(_UUID, 'instance_uuid'),
        *_sums(),
        sa.UniqueConstraint(
            'host_id',
            'length_s',
            'at',
            'instance_uuid',
            name='uniq_usage_buckets0host_id0length_s0at0instance_uuid',
        ),
    )
    _index('usage_buckets', 'at', 'length_s', 'at')
    _index('usage_buckets', 'instance_uuid', 'instance_uuid', 'length_s', 'at')
    _table(
        'host_usage_buckets',
        _id(),
        *_of_host('host_usage_buckets'),
        *_required(_INTEGER, 'instances'),
        *_sums(),
        sa.UniqueConstraint(
            'host_id',
            'length_s',
            'at',
            name='uniq_host_usage_buckets0host_id0length_s0at',
        ),
    )
    _index('host_usage_buckets', 'at', 'length_s', 'at')
    _table(
        'slowdowns',
        sa.Column('victim', _WORD, primary_key=True),
        sa.Column('neighbour', _WORD, primary_key=True),
        *_required(_DOUBLE, 'slowdown', 'samples'),
    )


def _create_host_time() -> None:
    _table(
        'host_time_samples',
        _id(),
        *_of_host('host_time_samples'),
        *_required(_INTEGER, 'batch'),
        *_required(_DOUBLE, 'at'),
        *_required(
            _INTEGER,
            'interval_us',
            'cpus',
            'idle_us',
            'steal_us',
            'irq_us',
            'guest_us',
            'direct_us',
            'shared_us',
            'own_us',
        ),
    )
    _index('host_time_samples', 'at', 'at')
    _index('host_time_samples', 'batch', 'host_id', 'batch')
    _index('host_time_samples', 'host_id', 'host_id', 'at')
    _table(
        'host_time_buckets',
        _id(),
        *_of_host('host_time_buckets'),
        *_required(_INTEGER, 'length_s'),
        *_required(_DOUBLE, 'at'),
        *_required(_INTEGER, 'samples'),
        *_required(_DOUBLE, 'first_at', 'last_at'),
        *_required(
            _INTEGER,
            'interval_us',
            'cpu_us',
            'idle_us',
            'steal_us',
            'irq_us',
            'guest_us',
            'direct_us',
            'shared_us',
            'own_us',
        ),
        sa.UniqueConstraint(
            'host_id',
            'length_s',
            'at',
            name='uniq_host_time_buckets0host_id0length_s0at',
        ),
    )
    _index('host_time_buckets', 'at', 'length_s', 'at')


def downgrade() -> None:
    """Drop the tables."""
    for name in reversed(_TABLES):
        op.drop_table(name)

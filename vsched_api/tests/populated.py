# SPDX-License-Identifier: Apache-2.0

"""A database in which everything is that agents report."""

import typing as ty

from vsched_api.collector import endpoint
from vsched_api.db import session as db
from vsched_api.operations import announcements
from vsched_api.operations import jobs
from vsched_api.tests import base
from vsched_lib.contract import balloons
from vsched_lib.contract import messages
from vsched_lib.contract import profiles
from vsched_lib.tests import balloon_reports
from vsched_lib.tests import error_profiles
from vsched_lib.tests import overhead_profiles

PROMISED = '11111111-1111-4111-8111-111111111111'
PLAIN = '22222222-2222-4222-8222-222222222222'
REFUSED = '33333333-3333-4333-8333-333333333333'
ELSEWHERE = '44444444-4444-4444-8444-444444444444'
ENDED = '55555555-5555-4555-8555-555555555555'
LASTING = '66666666-6666-4666-8666-666666666666'

#: The projects of instances; PLAIN has none.
PROJECT = '8f3c1d0e9b7a4c5d8e6f0a1b2c3d4e5f'
OTHER_PROJECT = 'd41c0a7b5e9f4c3d8b2a6f0e1d2c3b4a'
PROJECTS = {
    PROMISED: PROJECT,
    REFUSED: OTHER_PROJECT,
    ELSEWHERE: PROJECT,
    PLAIN: None,
}


def names(database: db.Database) -> dict[str, str]:
    """Return what there is of what paths name, with a job made for it."""
    job = jobs.create(
        database,
        announcements.Announcer(None),
        base.HOST,
        messages.JobKind.PROFILE_ERROR,
        {'quick': True},
        base.NOW,
    )
    return {'name': base.HOST, 'instance_uuid': PROMISED, 'job_uuid': job.uuid}


def fill(collector: endpoint.Collector) -> None:
    """Report everything that agents report, from two hosts."""
    collector.on_report(
        messages.Report(
            base.HOST,
            1,
            base.NOW,
            host_info=base.host_info(
                backends=(
                    messages.BackendInfo('deadline', True),
                    messages.BackendInfo('cfs', True),
                    messages.BackendInfo('rtds', False, ('not a Xen host',)),
                )
            ),
            instances=(
                messages.InstanceInfo(
                    PROMISED, 'promised', 1, None, 'web-1', PROJECT, 'm1.small'
                ),
                messages.InstanceInfo(PLAIN, 'plain', 2),
                messages.InstanceInfo(
                    REFUSED, 'refused', 4, None, 'web-1', OTHER_PROJECT, 'big'
                ),
            ),
            reservations=(
                base.reservation(PROMISED),
                base.reservation(
                    REFUSED,
                    vcpus=4,
                    state=messages.State.REFUSED,
                    runtime_us=16_000,
                    enforced_backend=None,
                    enforced_runtime_us=None,
                    enforced_period_us=None,
                    code='vsched.reservation.does_not_fit',
                    detail='bandwidth: 3800 mcpu needed exceed 1800 mcpu '
                    'allowed',
                    figures={'needed_mcpu': 3800, 'bound_mcpu': 1800},
                ),
            ),
            usage=tuple(
                [
                    base.sample(PROMISED, base.NOW + second, guest_us=guest_us)
                    for second, guest_us in enumerate(
                        (600_000, 612_000, 588_000, 600_000)
                    )
                ]
                + [
                    base.sample(
                        PLAIN,
                        base.NOW,
                        guest_us=900_000,
                        wait_us=700_000,
                        promised_us=None,
                        direct_us=40_000,
                        direct_wait_us=3_000,
                        shared_us=5_000,
                        wakeups=900,
                        net_rx_packets=1_200,
                        net_tx_packets=1_100,
                        disk_read_requests=30,
                        disk_write_requests=20,
                        executions=(2_000, 600, 1_500, 200, 1_000, 80, 400),
                    )
                ]
            ),
            host_usage=tuple(
                base.host_usage(base.NOW + second) for second in range(3)
            ),
            events=(
                base.event(
                    base.NOW - 20, uuid='a' * 8 + '-0000-4000-8000-' + '0' * 12
                ),
                base.event(
                    base.NOW - 10,
                    uuid='b' * 8 + '-0000-4000-8000-' + '0' * 12,
                    code='vsched.reservation.does_not_fit',
                    severity=messages.Severity.WARNING,
                    instance_uuid=REFUSED,
                    detail='3800 mcpu needed exceed 1800 mcpu allowed',
                    figures={'needed_mcpu': 3800},
                ),
                base.event(
                    base.NOW,
                    uuid='c' * 8 + '-0000-4000-8000-' + '0' * 12,
                    code='vsched.drift.repaired',
                    instance_uuid=PROMISED,
                    severity=messages.Severity.WARNING,
                    detail='vCPU 0 had policy 0',
                ),
            ),
            error_profiles=(
                _profile(1),
                _profile(2, notes=('cfs: not measured',)),
                _profile(1, source=profiles.ProfileSource.LIVE),
            ),
            overhead_profiles=(overhead_profiles.profile(),),
            balloons=(
                balloon_reports.report(PLAIN, vcpus=2, online_vcpus=2),
                balloon_reports.report(
                    REFUSED,
                    state=balloons.BalloonState.KEPT,
                    online_vcpus=3,
                    min_vcpus=2,
                    floor_vcpus=3,
                    cause='it waited',
                    cpus=(0, 1, 2),
                    not_before=base.NOW + 60,
                ),
            ),
            all_balloons=True,
            balloon_changes=(
                balloon_reports.change(
                    PLAIN,
                    uuid=ENDED,
                    started_at=base.NOW - 600,
                    ended_at=base.NOW - 540,
                    vcpus=2,
                    before_vcpus=2,
                    outcome=balloons.Outcome.REVERTED,
                    detail='its progress counter did not grow',
                ),
                balloon_reports.change(
                    REFUSED,
                    uuid=LASTING,
                    started_at=base.NOW - 60,
                    online_vcpus=3,
                    outcome=balloons.Outcome.KEPT,
                ),
            ),
        )
    )
    collector.on_report(
        messages.Report(
            'node2',
            1,
            base.NOW,
            host_info=base.host_info(
                backends=(
                    messages.BackendInfo(
                        'deadline', False, ('sched_rt_runtime_us is 0',)
                    ),
                    messages.BackendInfo('cfs', True),
                )
            ),
            instances=(
                messages.InstanceInfo(
                    ELSEWHERE, 'elsewhere', 1, None, '=web-2', PROJECT, 'small'
                ),
            ),
            reservations=(
                base.reservation(
                    ELSEWHERE,
                    state=messages.State.DEGRADED,
                    enforced_backend='cfs',
                    code='vsched.backend.unavailable',
                    detail='deadline can not be used',
                ),
            ),
        )
    )


def _profile(version: int, **changes: ty.Any) -> profiles.ErrorProfile:
    source = changes.get('source', profiles.ProfileSource.BENCHMARK)
    profile: profiles.ErrorProfile = error_profiles.full(
        windows=180,
        shares_ppm=(10_000, 500_000),
        version=version,
        uuid='%08d-%04d-4000-8000-%012d' % (version, source == 'live', 0),
        started_at=base.NOW - 3600,
        finished_at=base.NOW - 60,
        **changes,
    )
    return profile

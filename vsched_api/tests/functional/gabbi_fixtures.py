# SPDX-License-Identifier: Apache-2.0

"""What the YAML tests run against: the API, a collector and an agent.

The agent is the real one's stand-in for what it says and hears: it applies
every override it is told of, and says so.
"""

import itertools
import typing as ty
import unittest

from gabbi import fixture

from vsched_api import app
from vsched_api.collector import endpoint
from vsched_api.operations import rollups
from vsched_api.tests import base
from vsched_api.tests import conformance
from vsched_api.tests import databases
from vsched_lib.contract import agent_rpc
from vsched_lib.contract import balloons
from vsched_lib.contract import messages
from vsched_lib.contract import profiles
from vsched_lib.contract import rpc
from vsched_lib.tests import balloon_reports
from vsched_lib.tests import error_profiles
from vsched_lib.tests import overhead_profiles

PROMISED = '11111111-1111-4111-8111-111111111111'
PLAIN = '22222222-2222-4222-8222-222222222222'
REFUSED = '33333333-3333-4333-8333-333333333333'
ELSEWHERE = '44444444-4444-4444-8444-444444444444'
ENDED = '55555555-5555-4555-8555-555555555555'
LASTING = '66666666-6666-4666-8666-666666666666'

_served: ty.Any = None


def served() -> ty.Any:
    """The application, whichever a suite has when it is called.

    gabbi asks for it when it reads the tests, long before a fixture starts.
    """

    def serve(environ: ty.Any, start_response: ty.Any) -> ty.Any:
        # gabbi makes up a host for each file.
        _served.extensions['vsched'].conf.set_override(
            'trusted_hosts', [environ['HTTP_HOST'].partition(':')[0]], 'api'
        )
        return _served(environ, start_response)

    return serve


class Agent(agent_rpc.AgentEndpoint):
    """Applies what it is told, and tells that."""

    def __init__(self, collector: endpoint.Collector) -> None:
        self._collector = collector
        self._numbers = itertools.count(100)
        self._applied: set[str] = set()

    def on_jobs_changed(self, generation: int) -> None:
        """Do what is quick; other jobs run until they are cancelled."""
        self._collector.on_report(
            messages.Report(
                base.HOST,
                next(self._numbers),
                base.NOW,
                jobs=tuple(
                    messages.JobReport(
                        order.uuid, order.attempt, *_answer(order)
                    )
                    for order in self._collector.on_jobs(base.HOST).orders
                ),
            )
        )

    def on_overrides_changed(self, generation: int) -> None:
        """Ask for the overrides, apply them, report."""
        wanted = {
            one.instance_uuid: one
            for one in self._collector.on_overrides(base.HOST).overrides
        }
        reports = [
            base.reservation(
                uuid,
                source=messages.Source.OVERRIDE,
                since=base.NOW + 1,
                generation=one.generation,
                runtime_us=one.runtime_us,
                period_us=one.period_us,
                mode=one.mode,
                backend=one.backend,
                enforced_backend=one.backend or 'deadline',
                enforced_runtime_us=one.runtime_us,
                enforced_period_us=one.period_us,
            )
            for uuid, one in wanted.items()
        ]
        for uuid in self._applied - set(wanted):
            if uuid == PROMISED:
                reports.append(base.reservation(uuid))
            else:
                reports.append(
                    base.reservation(
                        uuid,
                        source=messages.Source.NONE,
                        state=messages.State.RELEASED,
                        runtime_us=None,
                        period_us=None,
                        mode=None,
                        enforced_backend=None,
                        enforced_runtime_us=None,
                        enforced_period_us=None,
                    )
                )
        self._applied = set(wanted)
        self._collector.on_report(
            messages.Report(
                base.HOST,
                next(self._numbers),
                base.NOW,
                reservations=tuple(reports),
                balloons=tuple(
                    self._balloons(
                        self._collector.on_overrides(base.HOST).balloons
                    )
                ),
            )
        )

    def _balloons(
        self, orders: ty.Iterable[balloons.BalloonOrder]
    ) -> ty.Iterator[balloons.BalloonReport]:
        wanted = {one.instance_uuid: one for one in orders}
        one = wanted.get(PLAIN)
        if one is None:
            yield balloon_reports.report(PLAIN, vcpus=2, online_vcpus=2)
        elif one.target_vcpus is None:
            yield balloon_reports.report(
                PLAIN,
                vcpus=2,
                online_vcpus=2,
                generation=one.generation,
                order_state=balloons.OrderState.APPLIED,
            )
        else:
            yield balloon_reports.report(
                PLAIN,
                state=balloons.BalloonState.MANUAL,
                vcpus=2,
                online_vcpus=one.target_vcpus,
                generation=one.generation,
                cause='an operator ordered 1 vCPU',
                order_state=balloons.OrderState.APPLIED,
            )


def _answer(order: messages.JobOrder) -> tuple[ty.Any, ...]:
    if order.wanted is messages.JobWanted.CANCEL:
        return messages.JobState.CANCELLED, 250_000, base.NOW, 'as asked'
    if order.parameters.get('quick'):
        return messages.JobState.DONE, 1_000_000, base.NOW, '12 points'
    return messages.JobState.RUNNING, 250_000, base.NOW, '3 of 12 points'


class Api(fixture.GabbiFixture):
    """Everything, on one kind of database."""

    kind: ty.ClassVar[ty.Any]

    def start_fixture(self) -> None:
        """Fill a database and serve it."""
        global _served
        self._test = unittest.TestCase()
        try:
            conf = databases.configuration(self.kind.make(self._test))
            conf.set_override('max_limit', 3, 'api')
            conf.set_override('host_down_after_s', 60, 'api')
            # How its hosts, thirty and ninety seconds ago, look now.
            now = base.NOW + 30
            collector = endpoint.Collector(conf, now=lambda: now)
            self._test.addCleanup(collector.database.dispose)
            _fill(collector)
            rollups.fold(
                collector.database, conf.collector.usage_fold_chunk_rows
            )
            late = endpoint.Collector(conf, now=lambda: now - 90)
            self._test.addCleanup(late.database.dispose)
            late.on_report(messages.Report('node3', 1, base.NOW - 60))
            transport = rpc.get_transport(conf, 'fake://')
            server = rpc.get_server(
                transport, agent_rpc.TOPIC, base.HOST, [Agent(collector)]
            )
            server.start()
            self._test.addCleanup(server.wait)
            self._test.addCleanup(server.stop)
            _served = conformance.check(
                app.create_app(conf, transport, now=lambda: now)
            )
            self._test.addCleanup(
                _served.extensions['vsched'].database.dispose
            )
        except BaseException:
            self._test.doCleanups()
            raise

    def stop_fixture(self) -> None:
        """Leave nothing."""
        self._test.doCleanups()


def _fill(collector: endpoint.Collector) -> None:
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
                messages.InstanceInfo(PROMISED, 'promised', 1),
                messages.InstanceInfo(PLAIN, 'plain', 2),
                messages.InstanceInfo(REFUSED, 'refused', 4),
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
            instances=(messages.InstanceInfo(ELSEWHERE, 'elsewhere', 1),),
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

# SPDX-License-Identifier: Apache-2.0

"""What the YAML tests run against: the API, a collector and an agent.

The agent is the real one's stand-in for what it says and hears: it applies
every override it is told of, and says so.
"""

import itertools
import os
import sys
import threading
import typing as ty
import unittest
import uuid as uuids

from gabbi import driver
from gabbi import fixture

from vsched_api import app
from vsched_api.collector import endpoint
from vsched_api.operations import rollups
from vsched_api.tests import base
from vsched_api.tests import conformance
from vsched_api.tests import database_options
from vsched_api.tests import populated
from vsched_lib.contract import agent_rpc
from vsched_lib.contract import balloons
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.tests import balloon_reports

_TESTS = os.path.join(os.path.dirname(__file__), 'gabbits')

_served: ty.Any = None


def build_tests(loader: ty.Any, module: str) -> ty.Any:
    """Return one suite for each YAML file.

    :param module: name of the module whose fixtures they use.
    """
    return driver.build_tests(
        _TESTS,
        loader,
        intercept=served,
        fixture_module=sys.modules[module],
        test_loader_name=module,
    )


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
        # Calls come on several threads. Were one to ask before another and to
        # report after it, the older state would be the last one.
        self._lock = threading.Lock()

    def on_jobs_changed(self, generation: int) -> None:
        """Do what is quick; other jobs run until they are cancelled."""
        with self._lock:
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
        with self._lock:
            self._apply()

    def _apply(self) -> None:
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
            if uuid == populated.PROMISED:
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
        one = wanted.get(populated.PLAIN)
        if one is None:
            yield balloon_reports.report(
                populated.PLAIN, vcpus=2, online_vcpus=2
            )
        elif one.target_vcpus is None:
            yield balloon_reports.report(
                populated.PLAIN,
                vcpus=2,
                online_vcpus=2,
                generation=one.generation,
                order_state=balloons.OrderState.APPLIED,
            )
        else:
            yield balloon_reports.report(
                populated.PLAIN,
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
            conf = base.patient(
                database_options.configuration(self.kind.make(self._test))
            )
            conf.set_override('max_limit', 3, 'api')
            conf.set_override('host_down_after_s', 60, 'api')
            # How its hosts, thirty and ninety seconds ago, look now.
            now = base.NOW + 30
            collector = endpoint.Collector(conf, now=lambda: now)
            self._test.addCleanup(collector.database.dispose)
            populated.fill(collector)
            rollups.fold(
                collector.database, conf.collector.usage_fold_chunk_rows
            )
            late = endpoint.Collector(conf, now=lambda: now - 90)
            self._test.addCleanup(late.database.dispose)
            late.on_report(messages.Report('node3', 1, base.NOW - 60))
            # The bus in memory is the process's. What an earlier service
            # announces late may not reach this agent. The first call makes
            # the option known.
            rpc.get_transport(conf, 'fake://')
            conf.set_override(
                'control_exchange', 'vsched-' + uuids.uuid4().hex
            )
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

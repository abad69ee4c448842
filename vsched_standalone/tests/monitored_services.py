# SPDX-License-Identifier: Apache-2.0

"""Services and an agent with data, for a Prometheus to scrape."""

from collections.abc import Iterator
from collections.abc import Sequence
import itertools
import os
import threading
import time
import typing as ty

import fixtures

from vsched_agent.metrics import recorder
from vsched_api import app
from vsched_api.collector import service
from vsched_api.db import models
from vsched_api.db.queries import hosts
from vsched_api.db import session
from vsched_api.operations import rollups
from vsched_api.tests import base
from vsched_api.tests import database_options
from vsched_api.tests import databases
from vsched_api.tests import monitoring
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.metrics import server
from vsched_standalone import http_server
from vsched_standalone.tests import documentation
from vsched_standalone.tests import private_services
from vsched_standalone.tests import tls_services

#: The page that says how to set it up.
PAGE = 'admin/monitoring.rst'
HOST = 'node-1'
TOKEN = '0f343b0931126a20f133d67c2b018a3b'

#: What is reported at once, in seconds: a full minute ended in it.
_SEEDED_S = 130
_REPORT_TIMEOUT_S = 60
_REPORT_INTERVAL_S = 0.5
#: A scrape that takes longer than the interval is given up; a busy machine
#: takes more than a second for one.
SCRAPE_S = 5

#: What is shown only once it has happened: a rule that compares the numbers of
#: two codes, and the events on the dashboard of agents.
_EVENT = errors.Code.CERTIFICATES_WITHDRAWN


class MonitoredServices(fixtures.Fixture):
    """A REST service that authenticates by keystone, and a collector.

    They run in this process, on a bus in memory and an SQLite database.

    :ivar port: of the REST service.
    :ivar collector_port: of the collector's metrics.
    :ivar agent_port: of the metrics of an agent, of which only they run: they
        count what is reported.
    :ivar one: an instance with a reservation; ``two`` has none.
    """

    def _setUp(self) -> None:
        self.one, self.two = base.uuids(2)
        self._numbers = itertools.count(1)
        folder = self.useFixture(fixtures.TempDir()).path
        token = os.path.join(folder, 'token')
        with open(token, 'w', encoding='ascii') as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(TOKEN + '\n')
        options = os.path.join(folder, 'vsched.conf')
        with open(options, 'w', encoding='ascii') as file:
            file.write(
                '[keystone_authtoken]\n'
                'www_authenticate_uri = http://127.0.0.1:5000\n'
                + documentation.block(PAGE, 'metrics-options').replace(
                    '/etc/vsched/scrape-token', token
                )
            )
        conf = self._conf = database_options.configuration(
            databases.SQLite.make(ty.cast(ty.Any, self)),
            '--config-file',
            options,
        )
        conf.set_override('auth_strategy', 'keystone', 'api')
        conf.set_override('usage_fold_interval_s', 1, 'collector')
        for name, seconds in base.TIMEOUTS_S.items():
            conf.set_override(name, seconds, 'database')
        self.collector_port = private_services.free_port()
        conf.set_override(
            'metrics_bind_port', self.collector_port, 'collector'
        )
        transport = rpc.get_transport(conf, 'fake://')
        collector = service.Service(conf, transport, 'one')
        collector.start()
        self.addCleanup(collector.stop)
        self._client = collector_rpc.CollectorClient(
            transport, _REPORT_TIMEOUT_S
        )
        self._recorder = recorder.Recorder(lambda: 1)
        self.agent_port = private_services.free_port()
        exporter = server.Server(
            server.Settings('agent', '127.0.0.1', self.agent_port),
            self._recorder.exposed(),
        )
        exporter.start()
        self.addCleanup(exporter.stop)
        served = app.create_app(conf)
        self.addCleanup(served.extensions['vsched'].database.dispose)
        http = http_server.HttpServer(served, '127.0.0.1', 0, threads=4)
        self.port = http.port
        http.start()
        self.addCleanup(http.stop)

    def seed(self) -> None:
        """Report two minutes of a host, and go on until the end."""
        now = time.time()
        self._deliver(
            self._report(
                [now - second for second in reversed(range(_SEEDED_S))],
                host_info=base.host_info(leaked_mcpu=250),
                instances=tuple(
                    messages.InstanceInfo(one, 'vm', 1)
                    for one in (self.one, self.two)
                ),
                reservations=(
                    base.reservation(self.one),
                    base.reservation(
                        self.two,
                        state=messages.State.REFUSED,
                        code=errors.Code.DOES_NOT_FIT,
                        enforced_backend=None,
                        enforced_runtime_us=None,
                        enforced_period_us=None,
                    ),
                ),
                events=(base.event(now, code=_EVENT),),
            )
        )
        self._store(now)
        ended = threading.Event()

        def go_on() -> None:
            while not ended.wait(_REPORT_INTERVAL_S):
                self._deliver(self._report([time.time()]))

        reporting = threading.Thread(target=go_on)
        reporting.start()
        self.addCleanup(reporting.join)
        self.addCleanup(ended.set)

    def _deliver(self, report: messages.Report) -> None:
        self._recorder.passed(0.005)
        self._recorder.reported(report, base.host_info(leaked_mcpu=250))
        self._client.report(report)

    def _store(self, now: float) -> None:
        database = session.Database(self._conf)
        try:
            rollups.fold(database, 5_000)
            database.write(lambda work: self._verify(work, now))
        finally:
            database.dispose()

    def _verify(self, work: ty.Any, now: float) -> None:
        host = hosts.by_name(work, HOST)
        assert host is not None
        work.add(
            models.HostVerification(
                host_id=host.id, checked_at=now, contradictions=[]
            )
        )

    def _report(
        self, moments: Sequence[float], **parts: ty.Any
    ) -> messages.Report:
        return messages.Report(
            HOST,
            next(self._numbers),
            moments[-1],
            sent_at=time.time(),
            usage=tuple(
                base.sample(
                    one, at, wait_us=20_000, direct_us=10_000, **changes
                )
                for at in moments
                for one, changes in (
                    (self.one, {'guest_us': 590_000}),
                    (self.two, {'promised_us': None}),
                )
            ),
            host_usage=tuple(base.host_usage(at) for at in moments),
            **parts,
        )

    def files(self) -> dict[str, str]:
        """Return the files of a Prometheus, with the ports of this one.

        Its files are to be in ``FOLDER``.
        """

        def read(name: str) -> str:
            path = monitoring.PROMETHEUS / name
            return path.read_text(encoding='utf-8')

        return {
            'prometheus.yaml': tls_services.replaced(
                read('prometheus.yaml'),
                ('scrape_interval: 60s', 'scrape_interval: %ds' % SCRAPE_S),
                ('evaluation_interval: 60s', 'evaluation_interval: 1s'),
                ('/etc/prometheus/vsched-token', 'FOLDER/token'),
                ('127.0.0.1:8790', '127.0.0.1:%d' % self.port),
                # All of a collector in one process, as the standalone has.
                ('          - 127.0.0.1:8792\n', ''),
                ('          - 127.0.0.1:8793\n', ''),
                ('127.0.0.1:8791', '127.0.0.1:%d' % self.collector_port),
                # A comment there: most sites scrape no agents.
                ('  # - job_name: vsched-agent', '  - job_name: vsched-agent'),
                ('  #   scheme: http\n', '    scheme: http\n'),
                ('  #   static_configs:', '    static_configs:'),
                ('  #     - targets:', '      - targets:'),
                (
                    '  #         - compute1:8799',
                    '          - 127.0.0.1:%d' % self.agent_port,
                ),
            ),
            'rules.yaml': read('rules.yaml'),
            'rules-test.yaml': read('rules-test.yaml'),
            'token': TOKEN + '\n',
        }

    def expressions(self) -> Iterator[tuple[str, str]]:
        """Yield the expressions of dashboards, and what alerts compare.

        Each with where it is.
        """
        for name, dashboard in monitoring.dashboards().items():
            for title, expression in monitoring.expressions(
                dashboard,
                __rate_interval='30s',
                agent='127.0.0.1:%d' % self.agent_port,
                host=HOST,
                instance_uuid=self.one,
            ):
                yield '%s: %s' % (name, title), expression
        for name, alert in monitoring.alerts().items():
            yield name, monitoring.compared(alert['expr'])


def empty(
    services: MonitoredServices, prometheus: private_services.Prometheus
) -> list[tuple[str, str]]:
    """Return the expressions that give no number, each with where it is."""
    return [
        (place, expression)
        for place, expression in services.expressions()
        if all(
            one['value'][1] == 'NaN'
            for one in prometheus.ask('query', query=expression)['result']
        )
    ]

# SPDX-License-Identifier: Apache-2.0

"""REST API, collector and simulated agents in one process, on SQLite."""

from collections.abc import Iterable
import contextlib
import dataclasses
import time

from oslo_config import cfg

from vsched_api import app
from vsched_api.collector import service as collectors
from vsched_api.db import migration
from vsched_api.operations import announcements
from vsched_api.rest import services
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import rpc
from vsched_standalone.demo import agents
from vsched_standalone.demo import fleet
from vsched_standalone import http_server

#: oslo.messaging's bus in memory, within one process.
BUS = 'fake://'

#: The only address that is served: every client is an administrator.
ADDRESS = '127.0.0.1'

#: How many reports this process sends and stores in a second.
_REPORTS_PER_S = 50

#: How long one report may take, in seconds: the first ones arrive together.
_REPORT_TIMEOUT_S = 120


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """What is simulated.

    :param hosts: how many.
    :param instances: on each of them.
    :param seed: of everything but times.
    :param interval_s: between two reports of a host; None for one that a
        process can keep up with.
    :param history_s: for how long before the start there is usage.
    :param port: of the REST API; 0 for any free one.
    """

    hosts: int = 12
    instances: int = 6
    seed: int = 1
    interval_s: float | None = None
    history_s: int = 1_800
    port: int = 8790

    @property
    def report_interval_s(self) -> float:
        """Return the interval; without one, it grows with the hosts."""
        if self.interval_s is not None:
            return self.interval_s
        return min(20.0, max(2.0, self.hosts / _REPORTS_PER_S))


class Announcer(announcements.Announcer):
    """Notifies the simulated agents, which are in this process.

    :param agents_: of all hosts.
    """

    def __init__(self, agents_: agents.Agents) -> None:
        super().__init__()
        self._fleet = agents_

    def overrides_changed(self, hosts: Iterable[str], generation: int) -> None:
        """Have the agents of these hosts report, and so learn of it."""
        self._fleet.wake(hosts)

    def jobs_changed(self, host: str, generation: int) -> None:
        """Have the agent of the host report, and so learn of it."""
        self._fleet.wake([host])


class Demo:
    """The services of the demonstration.

    :param conf: with the options of the API, their values set.
    """

    def __init__(self, conf: cfg.ConfigOpts, settings: Settings) -> None:
        self._conf = conf
        self._settings = settings

    def start(self) -> None:
        """Start everything; return when the API accepts connections.

        :raises OSError: when the port is in use.
        """
        with contextlib.ExitStack() as stack:
            self._start(stack)
            self._parts = stack.pop_all()

    def _start(self, stack: contextlib.ExitStack) -> None:
        settings = self._settings
        migration.sync(self._conf)
        transport = rpc.get_transport(self._conf, BUS)
        application = app.create_app(self._conf)
        self._http = http_server.HttpServer(
            application, ADDRESS, settings.port, threads=8
        )
        stack.callback(self._http.stop)
        collector = collectors.Service(self._conf, transport, 'demo')
        collector.start()
        stack.callback(collector.stop)
        self._agents = agents.Agents(
            fleet.build(
                settings.seed, settings.hosts, settings.instances, time.time()
            ),
            collector_rpc.CollectorClient(transport, _REPORT_TIMEOUT_S),
            settings.report_interval_s,
            settings.history_s,
        )
        with application.app_context():
            services.attach(
                application,
                dataclasses.replace(
                    services.current(), announcer=Announcer(self._agents)
                ),
            )
        self._http.start()
        self._agents.start()
        stack.callback(self._agents.stop)

    def wait_reported(self, timeout_s: float | None = None) -> bool:
        """Wait until each host has reported once; return whether it has."""
        return self._agents.wait_reported(timeout_s)

    @property
    def url(self) -> str:
        """Return the URL of the API."""
        return 'http://%s:%d' % (ADDRESS, self._http.port)

    def stop(self) -> None:
        """Stop all parts, in the reverse order of the start."""
        self._parts.close()

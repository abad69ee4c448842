# SPDX-License-Identifier: Apache-2.0

"""REST API, collector and simulated agents in one process, on SQLite."""

import contextlib
import dataclasses
import threading
import time
import typing as ty

from oslo_config import cfg
from waitress import server as waitress

from vsched_api import app
from vsched_api.collector import service as collectors
from vsched_api.db import migration
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import rpc
from vsched_standalone.demo import agents
from vsched_standalone.demo import fleet

#: oslo.messaging's bus in memory, within one process.
BUS = 'fake://'

#: The only address that is served: every client is an administrator.
ADDRESS = '127.0.0.1'

#: How long one report may take, in seconds: the first ones arrive together.
_REPORT_TIMEOUT_S = 120


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """What is simulated.

    :param hosts: how many.
    :param instances: on each of them.
    :param seed: of everything but times.
    :param interval_s: between two reports of a host.
    :param history_s: for how long before the start there is usage.
    :param port: of the REST API; 0 for any free one.
    """

    hosts: int = 12
    instances: int = 6
    seed: int = 1
    interval_s: float = 2.0
    history_s: int = 1_800
    port: int = 8790


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
        self._http = waitress.create_server(
            app.create_app(self._conf),
            host=ADDRESS,
            port=settings.port,
            threads=8,
            ident=None,
        )
        stack.callback(self._http.close)
        collector = collectors.Service(self._conf, transport, 'demo')
        collector.start()
        stack.callback(collector.stop)
        self._agents = agents.Agents(
            fleet.build(
                settings.seed, settings.hosts, settings.instances, time.time()
            ),
            collector_rpc.CollectorClient(transport, _REPORT_TIMEOUT_S),
            settings.interval_s,
            settings.history_s,
        )
        threading.Thread(
            target=self._http.run, name='vsched-http', daemon=True
        ).start()
        self._agents.start()
        stack.callback(self._agents.stop)

    def wait_reported(self, timeout_s: float | None = None) -> bool:
        """Wait until each host has reported once; return whether it has."""
        return self._agents.wait_reported(timeout_s)

    @property
    def url(self) -> str:
        """Return the URL of the API."""
        port: ty.Any = self._http.effective_port
        return 'http://%s:%d' % (ADDRESS, int(port))

    def stop(self) -> None:
        """Stop all parts, in the reverse order of the start."""
        self._parts.close()

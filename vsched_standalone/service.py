# SPDX-License-Identifier: Apache-2.0

"""API, collector and agent in one process, with SQLite and a bus in memory.

The parts are those that run as separate services in production; only the
message bus and the database differ.
"""

import contextlib
import threading

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service.backend import base as service_base

from vsched_agent import service as agents
from vsched_api import app
from vsched_api.collector import service as collectors
from vsched_api.db import migration
from vsched_lib.contract import rpc
from vsched_standalone import http_server

LOG = logging.getLogger(__name__)

#: oslo.messaging's bus in memory, within one process.
BUS = 'fake://'


class Standalone(service_base.ServiceBase):
    """The three services in one process.

    :param conf: with the options of agent, API and standalone registered.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._stopped = threading.Event()

    def start(self) -> None:
        """Migrate the database, then start collector, API and agent.

        :raises OSError: when the address is in use.
        """
        with contextlib.ExitStack() as stack:
            self._start(stack)
            # After a failure, the stack stops the parts that were started.
            self._parts = stack.pop_all()
        LOG.info('vsched serves %s', self.url)

    def _start(self, stack: contextlib.ExitStack) -> None:
        migration.sync(self._conf)
        transport = rpc.get_transport(self._conf, BUS)
        collector = collectors.Service(
            self._conf, transport, self._conf.agent.host
        )
        collector.start()
        stack.callback(collector.stop)
        options = self._conf.standalone
        self._http = http_server.HttpServer(
            app.create_app(self._conf, transport),
            options.bind_host,
            options.bind_port,
            options.threads,
        )
        stack.callback(self._http.stop)
        self._http.start()
        # Started last, therefore stopped first: its last report is still
        # stored.
        agent = agents.Agent(self._conf, transport)
        agent.start()
        stack.callback(agent.stop)

    @property
    def url(self) -> str:
        """Return the URL of the API."""
        return 'http://%s:%d' % (self._conf.standalone.bind_host, self.port)

    @property
    def port(self) -> int:
        """Return the port of the API, also when the option is 0."""
        return self._http.port

    def stop(self, graceful: bool = True) -> None:
        """Stop all parts, in the reverse order of the start."""
        try:
            self._parts.close()
        finally:
            self._stopped.set()

    def wait(self) -> None:
        """Wait until the service has stopped."""
        self._stopped.wait()

    def reset(self) -> None:
        """Apply a configuration that was read again."""

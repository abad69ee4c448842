# SPDX-License-Identifier: Apache-2.0

"""API, collector and agent in one process, on SQLite and a bus in memory.

The embedded default: the parts are the ones that run apart in production,
only the bus and the database are smaller.
"""

import contextlib
import threading

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service.backend import base as service_base
from waitress import server as waitress

from vsched_agent import service as agents
from vsched_api import app
from vsched_api.collector import service as collectors
from vsched_api.db import migration
from vsched_lib.contract import rpc

LOG = logging.getLogger(__name__)

#: The bus of one process; oslo.messaging's own, not for several.
BUS = 'fake://'


class Standalone(service_base.ServiceBase):
    """The three services in one process.

    :param conf: with the options of agent, API and standalone registered.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._stopped = threading.Event()

    def start(self) -> None:
        """Bring the database up to date, then start collector, API, agent.

        :raises OSError: when the address to serve on is taken.
        """
        with contextlib.ExitStack() as stack:
            self._start(stack)
            # Whatever started before a failure has been stopped by now.
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
        self._http = waitress.create_server(
            app.create_app(self._conf, transport),
            host=options.bind_host,
            port=options.bind_port,
            threads=options.threads,
            ident=None,
        )
        stack.callback(self._http.close)
        threading.Thread(
            target=self._http.run, name='vsched-http', daemon=True
        ).start()
        # Last, so that it is the first to stop: its last words arrive.
        agent = agents.Agent(self._conf, transport)
        agent.start()
        stack.callback(agent.stop)

    @property
    def url(self) -> str:
        """Where the API is served."""
        return 'http://%s:%d' % (self._conf.standalone.bind_host, self.port)

    @property
    def port(self) -> int:
        """The port in use, also when any was asked for."""
        return int(self._http.effective_port)

    def stop(self, graceful: bool = True) -> None:
        """Stop everything, in the reverse order of the start."""
        self._parts.close()
        self._stopped.set()

    def wait(self) -> None:
        """Until it was stopped."""
        self._stopped.wait()

    def reset(self) -> None:
        """The configuration was read again."""

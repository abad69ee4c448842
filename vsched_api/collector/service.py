# SPDX-License-Identifier: Apache-2.0

"""The collector as it runs in one process."""

import contextlib
import dataclasses
import threading
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_api.collector import endpoint
from vsched_api.collector import periodic
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import rpc
from vsched_lib.metrics import server as metrics_server

LOG = logging.getLogger(__name__)

#: How long a service that stops waits for the broker, if it is not connected
#: yet, in seconds.
CONNECT_TIMEOUT_S = 2.0


class Service:
    """Takes reports off the bus, and runs the periodic tasks.

    Any number may run against one bus and one database.

    :param conf: has the options of :mod:`vsched_api.conf`.
    :param transport: the bus; None for a process that takes no reports.
    :param server: this process's name on it.
    :param tends: whether this process runs the periodic tasks.
    :param process: number of this process among those of its collector. Its
        metrics are served on the port that is higher by as much.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        transport: ty.Any,
        server: str,
        tends: bool = True,
        process: int = 0,
    ) -> None:
        self._collector = endpoint.Collector(conf, transport=transport)
        self._receiver = None
        if transport is not None:
            self._receiver = _Receiver(transport, server, self._collector)
        self._tasks = None
        if tends:
            self._tasks = periodic.Tasks(
                conf, self._collector.database, self._collector.metrics
            )
        self._metrics_server = metrics_server.Server(
            _metrics_settings(conf, process), self._collector.metrics.exposed()
        )

    @property
    def metrics_port(self) -> int:
        """The port on which metrics are served; 0 when they are not."""
        return self._metrics_server.port

    def start(self) -> None:
        """Begin; comes back at once, even while the broker is away.

        :raises vsched_lib.metrics.server.UnusableEndpoint: when the metrics
            cannot be served.
        """
        self._metrics_server.start()
        if self._receiver is not None:
            self._receiver.start()
        if self._tasks is not None:
            self._tasks.start()

    def stop(self) -> None:
        """Answer what was taken off the bus, take no more, and end."""
        # All of them, also when one fails. The last one is stopped first.
        with contextlib.ExitStack() as stack:
            stack.callback(self._collector.database.dispose)
            stack.callback(self._metrics_server.stop)
            if self._tasks is not None:
                stack.callback(self._tasks.stop)
            if self._receiver is not None:
                stack.callback(self._receiver.stop)


class _Receiver:
    """The server on the bus."""

    def __init__(
        self, transport: ty.Any, name: str, collector: endpoint.Collector
    ) -> None:
        self._name = name
        self._server = rpc.get_server(
            transport, collector_rpc.TOPIC, name, [collector]
        )
        self._stopping = threading.Event()
        self._started = False
        # Of its own: it waits for a broker that is away.
        self._starting = threading.Thread(
            target=self._start, name='vsched-collector', daemon=True
        )

    def start(self) -> None:
        self._started = True
        self._starting.start()

    def stop(self) -> None:
        """Return when all requests that were accepted are answered."""
        self._stopping.set()
        if not self._started:
            return
        # Until that thread ends it is not known whether any is accepted.
        self._starting.join(CONNECT_TIMEOUT_S)
        if not self._starting.is_alive():
            self._stop()
        # Otherwise the broker is away, so that there are no requests.

    def _start(self) -> None:
        self._server.start()
        if self._stopping.is_set():
            # The broker came back, and stop() may have returned.
            self._stop()
            return
        LOG.info('Collector %s takes reports', self._name)

    def _stop(self) -> None:
        # Both may be called twice, also from two threads: the second call
        # waits for the first.
        self._server.stop()
        self._server.wait()


def _metrics_settings(
    conf: cfg.ConfigOpts, process: int
) -> metrics_server.Settings:
    settings = metrics_server.Settings.of(conf, 'collector')
    if not settings.port:
        return settings
    return dataclasses.replace(settings, port=settings.port + process)

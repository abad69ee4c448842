# SPDX-License-Identifier: Apache-2.0

"""The API in this process, over HTTP, with a fleet and a way to cut it off."""

import contextlib
import logging
import time
import typing as ty

from oslo_config import cfg
import requests

from vsched_api import app
from vsched_api.collector import endpoint
from vsched_api.operations import rollups
from vsched_api.tests import doors
from vsched_lib.contract import agent_rpc
from vsched_lib.contract import rpc
from vsched_standalone import http_server
from vsched_ui.tests import fleet

THREADS = 8
#: Only a hang takes longer.
TIMEOUT_S = 90


class Service:
    """Serves until it is closed.

    :param conf: with a database that has its tables.
    :param hosts: how many hosts the fleet has.
    :param instances: how many instances each host has.
    :param seconds: how much usage the first host has.
    :param hostile: whether an instance has a script for a name.
    :ivar hosts: the hosts of the fleet.
    :ivar door: lets requests through while it is open.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        hosts: int,
        instances: int,
        seconds: int = fleet.SECONDS,
        hostile: bool = True,
    ) -> None:
        # Waitress logs that its queue is as long as the page's requests.
        logging.getLogger('waitress.queue').setLevel(logging.ERROR)
        now = time.time()
        self._conf = conf
        self._refreshed_s = time.monotonic()
        with contextlib.ExitStack() as stack:
            self.collector = endpoint.Collector(conf)
            stack.callback(self.collector.database.dispose)
            # Seeding takes a while; all reports are of one moment.
            seeding = endpoint.Collector(conf, now=lambda: now)
            self.hosts = fleet.seed(
                conf, seeding, hosts, instances, now, seconds, hostile
            )
            seeding.database.dispose()
            for host in self.hosts:
                host.collector = self.collector
            transport = rpc.get_transport(conf, 'fake://')
            # The first host follows what changes; an empty fleet has none.
            for host in self.hosts[:1]:
                first = rpc.get_server(
                    transport, agent_rpc.TOPIC, host.name, [host]
                )
                first.start()
                stack.callback(first.wait)
                stack.callback(first.stop)
            application = app.create_app(conf, transport)
            stack.callback(application.extensions['vsched'].database.dispose)
            http = http_server.HttpServer(application, '127.0.0.1', 0, THREADS)
            http.start()
            stack.callback(http.stop)
            self._port = http.port
            self.door = doors.Door(('127.0.0.1', self._port))
            self.door.open()
            stack.callback(self.door.shut)
            self._stack = stack.pop_all()

    @property
    def url(self) -> str:
        """Return the root of the API."""
        return 'http://127.0.0.1:%d' % self.door.port

    @property
    def direct_url(self) -> str:
        """Return the root of the API, past the door."""
        return 'http://127.0.0.1:%d' % self._port

    def refresh(self, fresh_s: float) -> None:
        """Report usage of the present, if the newest becomes old.

        :param fresh_s: how old it may be, in seconds.
        """
        if time.monotonic() - self._refreshed_s < fresh_s:
            return
        now = time.time()
        for number, host in enumerate(self.hosts, start=1):
            if not fleet.is_down(number):
                host.usage(now - 10, now - 5)
        rollups.fold(
            self.collector.database, self._conf.collector.usage_fold_chunk_rows
        )
        self._refreshed_s = time.monotonic()

    def close(self) -> None:
        """End the service."""
        self._stack.close()

    def measure(self, host: str) -> None:
        """Order a run of the error profile."""
        answer = requests.post(
            '%s/v1/hosts/%s/profiles/error' % (self.url, host),
            json={},
            timeout=TIMEOUT_S,
        )
        answer.raise_for_status()

    def patch(self, uuid: str, **changes: ty.Any) -> None:
        """Change a reservation, as another client would."""
        answer = requests.patch(
            '%s/v1/reservations/%s' % (self.url, uuid),
            json=changes,
            timeout=TIMEOUT_S,
        )
        answer.raise_for_status()

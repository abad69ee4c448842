# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The collector as it runs: a server on the bus, sums, and retention."""

from collections.abc import Callable
import threading
import time
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_api.collector import endpoint
from vsched_api.db import errors
from vsched_api.operations import retention
from vsched_api.operations import rollups
from vsched_api.operations import slowdowns
from vsched_api.operations import snapshot
from vsched_lib.contract import rpc

LOG = logging.getLogger(__name__)


class Service:
    """Takes reports off the bus, sums samples, deletes what is too old.

    Any number may run against one bus and one database.

    :param conf: has the options of :mod:`vsched_api.conf`.
    :param transport: the bus.
    :param server: this process's name on it.
    """

    def __init__(self, conf: cfg.ConfigOpts, transport: ty.Any,
                 server: str) -> None:
        self._conf = conf
        self._name = server
        self._collector = endpoint.Collector(conf)
        self._server = rpc.get_server(
            transport, rpc.COLLECTOR_TOPIC, server, [self._collector])
        self._stopped = threading.Event()
        # Of its own: it waits for a broker that is away.
        self._starting = threading.Thread(
            target=self._start, name='vsched-collector', daemon=True)
        self._looping = [
            threading.Thread(target=self._loop, name=name, daemon=True,
                             args=(name, interval_s, act))
            for name, interval_s, act in (
                ('vsched-usage', conf.collector.usage_fold_interval_s,
                 self._fold),
                ('vsched-slowdowns', slowdowns.LENGTH_S, self._learn),
                ('vsched-snapshot', conf.snapshot.tend_interval_s,
                 self._tend),
                ('vsched-retention', conf.collector.purge_interval_s,
                 self._purge))]

    def start(self) -> None:
        """Begin; comes back at once, even while the broker is away."""
        self._starting.start()
        for thread in self._looping:
            thread.start()

    def stop(self) -> None:
        """Answer what was taken off the bus, take no more, and end."""
        self._stopped.set()
        if not self._starting.is_alive():
            self._server.stop()
            self._server.wait()
        for thread in self._looping:
            thread.join()
        self._collector.database.dispose()

    def _start(self) -> None:
        self._server.start()
        LOG.info('Collector %s takes reports', self._name)

    def _fold(self) -> None:
        rollups.fold(
            self._collector.database,
            self._conf.collector.usage_fold_chunk_rows, self._stopped.is_set)

    def _purge(self) -> None:
        retention.purge(self._collector.database, self._conf, time.time(),
                        self._stopped.is_set)

    def _learn(self) -> None:
        slowdowns.learn(self._collector.database, time.time(),
                        self._conf.collector.usage_fold_interval_s)

    def _tend(self) -> None:
        snapshot.tend(self._collector.database, self._conf, time.time(),
                      self._stopped.is_set)

    def _loop(self, name: str, interval_s: int,
              act: Callable[[], None]) -> None:
        while not self._stopped.wait(interval_s):
            try:
                act()
            except errors.DatabaseUnavailable as problem:
                LOG.warning('%s: did nothing: %s', name, problem)
            except Exception:
                # One bad round must not end all later ones.
                LOG.exception('%s: a round failed', name)

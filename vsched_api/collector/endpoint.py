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

"""The collector's side of the bus."""

from collections.abc import Callable
import time

from oslo_config import cfg
from oslo_log import log as logging

from vsched_api.db import session as db
from vsched_api.operations import gathering
from vsched_api.operations import jobs
from vsched_api.operations import overrides
from vsched_api.operations import reports
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.contract import wire

LOG = logging.getLogger(__name__)


class Collector(rpc.CollectorEndpoint):
    """Stores what agents report, and tells them what operators want.

    Answers only what is stored for good. A database that is away raises:
    the agent sees an unreachable collector and keeps the batch.

    :param conf: has the options of :mod:`vsched_api.conf`.
    :param now: seconds since the epoch.
    """

    def __init__(self, conf: cfg.ConfigOpts,
                 now: Callable[[], float] = time.time) -> None:
        self.database = db.Database(conf)
        self._together = gathering.Gathering(self.database)
        self._confidence = conf.snapshot.confidence
        self._now = now

    def on_report(self, report: messages.Report) -> messages.ReportReply:
        """Store a batch; see :mod:`vsched_api.operations.reports`."""
        reply = reports.store(
            self.database, report, self._now(), self._together,
            self._confidence)
        LOG.debug('Host %(host)s: batch %(batch)d %(what)s', {
            'host': report.host, 'batch': report.batch,
            'what': 'repeated' if reply.duplicate else 'stored'})
        return reply

    def on_malformed_report(
            self, report: object,
            problem: wire.MalformedMessage) -> messages.ReportReply:
        """Answer a batch that can not be read, so that the next one comes.

        See :func:`vsched_api.operations.reports.reject`.
        """
        return reports.reject(self.database, report, problem, self._now())

    def on_overrides(self, host: str) -> messages.Overrides:
        """Every override that holds on a host."""
        return overrides.of_host(self.database, host)

    def on_jobs(self, host: str) -> messages.Jobs:
        """Every unfinished job of a host."""
        return jobs.orders(self.database, host)

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

"""Tell agents at once what they would learn with their next report."""

from collections.abc import Iterable
import threading
import typing as ty

from oslo_log import log as logging

from vsched_lib.contract import errors
from vsched_lib.contract import rpc

LOG = logging.getLogger(__name__)


class Announcer:
    """Speaks to agents; what it fails to say is only late, never lost.

    On a thread of its own: a bus that hangs must not hold up a request
    whose work is done. The thread starts with the first announcement, so
    that a server may fork before.

    :param transport: the bus, or None to leave agents to their reports.
    """

    def __init__(self, transport: ty.Any = None) -> None:
        self._agents = None if transport is None else rpc.AgentClient(
            transport)
        self._news = threading.Condition()
        self._generations: dict[tuple[str, str], int] = {}
        self._thread: threading.Thread | None = None

    def overrides_changed(self, hosts: Iterable[str],
                          generation: int) -> None:
        """The overrides of these hosts have a newer generation."""
        self._announce('overrides', hosts, generation)

    def jobs_changed(self, host: str, generation: int) -> None:
        """The jobs of a host have a newer generation."""
        self._announce('jobs', [host], generation)

    def _announce(self, what: str, hosts: Iterable[str],
                  generation: int) -> None:
        if self._agents is None:
            return
        with self._news:
            for host in hosts:
                # Only the newest counts, should the bus be slow.
                self._generations[what, host] = max(
                    generation, self._generations.get((what, host), 0))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, args=(self._agents,),
                    name='vsched-announcer', daemon=True)
                self._thread.start()
            self._news.notify()

    def _run(self, agents: rpc.AgentClient) -> None:
        tell = {'overrides': agents.overrides_changed,
                'jobs': agents.jobs_changed}
        while True:
            with self._news:
                self._news.wait_for(lambda: self._generations)
                (what, host), generation = self._generations.popitem()
            try:
                tell[what](host, generation)
            except errors.Unreachable as problem:
                LOG.warning(
                    'Generation %(generation)d of the %(what)s waits for '
                    'the next report of %(host)s: %(problem)s',
                    {'generation': generation, 'what': what, 'host': host,
                     'problem': problem})
            except Exception:
                # The next one must still be told.
                LOG.exception('Announcing %s to %s failed', what, host)

# SPDX-License-Identifier: Apache-2.0

"""Tell agents at once what they would learn with their next report."""

from collections.abc import Iterable
import threading
import typing as ty

from oslo_log import log as logging

from vsched_lib.contract import errors
from vsched_lib.contract import request_context
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
        self._agents = (
            None if transport is None else rpc.AgentClient(transport)
        )
        self._news = threading.Condition()
        self._generations: dict[
            tuple[str, str], tuple[int, dict[str, ty.Any]]
        ] = {}
        self._thread: threading.Thread | None = None

    def overrides_changed(self, hosts: Iterable[str], generation: int) -> None:
        """The overrides of these hosts have a newer generation."""
        self._announce('overrides', hosts, generation)

    def jobs_changed(self, host: str, generation: int) -> None:
        """The jobs of a host have a newer generation."""
        self._announce('jobs', [host], generation)

    def _announce(
        self, what: str, hosts: Iterable[str], generation: int
    ) -> None:
        if self._agents is None:
            return
        # Of the request whose thread this is, for the agents' logs.
        request = request_context.outgoing()
        with self._news:
            for host in hosts:
                # Only the newest counts, should the bus be slow.
                known = self._generations.get((what, host))
                if known is None or known[0] <= generation:
                    self._generations[what, host] = generation, request
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run,
                    args=(self._agents,),
                    name='vsched-announcer',
                    daemon=True,
                )
                self._thread.start()
            self._news.notify()

    def _run(self, agents: rpc.AgentClient) -> None:
        tell = {
            'overrides': agents.overrides_changed,
            'jobs': agents.jobs_changed,
        }
        while True:
            with self._news:
                self._news.wait_for(lambda: self._generations)
                (what, host), (generation, request) = (
                    self._generations.popitem()
                )
            try:
                tell[what](host, generation, request)
            except errors.Unreachable as problem:
                LOG.warning(
                    'Generation %(generation)d of the %(what)s waits for '
                    'the next report of %(host)s: %(problem)s',
                    {
                        'generation': generation,
                        'what': what,
                        'host': host,
                        'problem': problem,
                    },
                )
            except Exception:
                # The next one must still be told.
                LOG.exception('Announcing %s to %s failed', what, host)

# SPDX-License-Identifier: Apache-2.0

"""Notify agents of new generations without waiting for their next report."""

from collections.abc import Iterable
import threading
import typing as ty

from oslo_log import log as logging

from vsched_lib.contract import agent_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import request_context

LOG = logging.getLogger(__name__)


class Announcer:
    """Casts notifications to agents; a lost one is repeated by the next reply.

    Casts are sent by a separate thread: a message bus that blocks does not
    delay API requests. The thread starts with the first announcement, so that
    a server process may fork before.

    :param transport: the message bus; without one, agents get new generations
        from the replies to their reports only.
    """

    def __init__(self, transport: ty.Any = None) -> None:
        self._agents = (
            None if transport is None else agent_rpc.AgentClient(transport)
        )
        self._news = threading.Condition()
        self._generations: dict[
            tuple[str, str], tuple[int, dict[str, ty.Any]]
        ] = {}
        self._thread: threading.Thread | None = None

    def overrides_changed(self, hosts: Iterable[str], generation: int) -> None:
        """Announce a new generation of the overrides of these hosts."""
        self._announce('overrides', hosts, generation)

    def jobs_changed(self, host: str, generation: int) -> None:
        """Announce a new generation of the jobs of a host."""
        self._announce('jobs', [host], generation)

    def _announce(
        self, what: str, hosts: Iterable[str], generation: int
    ) -> None:
        if self._agents is None:
            return
        # The context of the current API request, for the agents' logs.
        request = request_context.outgoing()
        with self._news:
            for host in hosts:
                # If the bus is slow, only the newest generation is sent.
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

    def _run(self, agents: agent_rpc.AgentClient) -> None:
        notify = {
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
                notify[what](host, generation, request)
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
                # Keep the thread alive for the next announcement.
                LOG.exception('Announcing %s to %s failed', what, host)

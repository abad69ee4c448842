# SPDX-License-Identifier: Apache-2.0

"""What the API notifies agents of.

1.0  overrides_changed(generation)
1.1  jobs_changed(generation)

The API casts, and never waits for an agent: the desired state is in the
database, and an agent that missed the cast gets its generation in the reply
to its next report.
"""

import abc
import typing as ty

from vsched_lib.contract import bounds
from vsched_lib.contract import request_context
from vsched_lib.contract import rpc

TOPIC = 'vsched-agent'
VERSION = '1.1'

#: How long the API lets the bus take a message for an agent, in seconds.
CAST_TIMEOUT_S = 3


def _is_generation(value: object) -> bool:
    # Anything else is not the API's: nothing is lost without it.
    return type(value) is int and 0 <= value <= bounds.MAX_INTEGER


class AgentEndpoint(abc.ABC):
    """Base of the agent's side."""

    target = rpc.target(VERSION)

    @rpc.expose
    def overrides_changed(
        self, ctxt: dict[str, ty.Any], generation: int
    ) -> None:
        """Notify that the host's overrides have a newer generation."""
        request_context.incoming(ctxt)
        if _is_generation(generation):
            self.on_overrides_changed(generation)

    @rpc.expose
    def jobs_changed(self, ctxt: dict[str, ty.Any], generation: int) -> None:
        """Notify that the host's jobs have a newer generation."""
        request_context.incoming(ctxt)
        if _is_generation(generation):
            self.on_jobs_changed(generation)

    @abc.abstractmethod
    def on_jobs_changed(self, generation: int) -> None:
        """Handle the notification."""

    @abc.abstractmethod
    def on_overrides_changed(self, generation: int) -> None:
        """Handle the notification."""


class AgentClient:
    """How the API reaches an agent.

    :param timeout_s: longest wait for the bus to take a message, in seconds.
    """

    def __init__(
        self, transport: ty.Any, timeout_s: float = CAST_TIMEOUT_S
    ) -> None:
        self._client = rpc.get_client(transport, TOPIC, VERSION)
        self._bounded = rpc.Bounded('agent', timeout_s)

    def overrides_changed(
        self,
        host: str,
        generation: int,
        request: ty.Mapping[str, ty.Any] | None = None,
    ) -> None:
        """Notify a host's agent to fetch its overrides now.

        :param request: which request it is because of, see
            :func:`request_context.outgoing`; the caller's when None.
        :raises errors.Unreachable: when the bus took no message; the agent
            learns of it from the reply to its next report.
        """
        self._cast(host, 'overrides_changed', generation, request)

    def jobs_changed(
        self,
        host: str,
        generation: int,
        request: ty.Mapping[str, ty.Any] | None = None,
    ) -> None:
        """Notify a host's agent to fetch its jobs now.

        :param request: likewise.
        :raises errors.Unreachable: likewise.
        """
        self._cast(host, 'jobs_changed', generation, request)

    def _cast(
        self,
        host: str,
        method: str,
        generation: int,
        request: ty.Mapping[str, ty.Any] | None,
    ) -> None:
        context = (
            request_context.outgoing() if request is None else dict(request)
        )
        self._bounded.run(
            '%s on %s' % (method, host),
            lambda: self._client.prepare(server=host).cast(
                context, method, generation=generation
            ),
        )

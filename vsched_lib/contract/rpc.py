# SPDX-License-Identifier: Apache-2.0

"""Topics, versions and clients of the bus.

The only module below the services that knows oslo.messaging. Agents call the
collector; the API casts to agents, and never waits for one: the desired state
is in the database, and an agent that missed the cast gets its generation in
the reply to its next report.

collector 1.0  report(report), overrides(host)
          1.1  jobs(host)
          1.2  requests and replies are signed, reports have epochs
agent     1.0  overrides_changed(generation)
          1.1  jobs_changed(generation)

What messages gained since, such as balloons in reports and in overrides,
needs no version: readers ignore keys that they do not know, and an agent
that reports no balloons gets no orders for them. A signature is such an
addition too: the context of a request has it, and a key of the reply.

An agent asks for the newest version that it knows. When a collector does not
have it, it asks for the one before, and for the newest again some minutes
later. So either side may be upgraded first, and collectors one by one.
"""

import abc
from collections.abc import Sequence
import importlib
import time
import typing as ty
import weakref

from oslo_config import cfg
from oslo_service import backend

# oslo.messaging imports oslo.service, which selects eventlet unless another
# backend has been selected before.
backend.register_backend_default_hook(lambda: backend.BackendType.THREADING)

import oslo_messaging as messaging  # noqa: E402

from vsched_lib import bounded_calls  # noqa: E402
from vsched_lib.contract import errors  # noqa: E402
from vsched_lib.contract import messages  # noqa: E402
from vsched_lib.contract import request_context  # noqa: E402
from vsched_lib.contract import signing  # noqa: E402
from vsched_lib.contract import wire  # noqa: E402

COLLECTOR_TOPIC = 'vsched-collector'
COLLECTOR_VERSION = '1.2'
#: Those that an agent asks for, the newest first.
COLLECTOR_VERSIONS = ('1.2', '1.1')
AGENT_TOPIC = 'vsched-agent'
AGENT_VERSION = '1.1'
EXCHANGE = 'vsched'

#: How long an agent waits for the collector before it keeps the batch and
#: tries again later, in seconds.
REPORT_TIMEOUT_S = 10

#: How long the API lets the bus take a message for an agent, in seconds.
CAST_TIMEOUT_S = 3

#: How long an agent uses an older version that a collector asked for before
#: it tries the newest again, in seconds.
OLD_VERSION_S = 300.0

#: Transports that do not leave the process.
_IN_MEMORY = ('fake', 'kombu+memory')
_in_memory: weakref.WeakSet[ty.Any] = weakref.WeakSet()


def get_transport(conf: cfg.ConfigOpts, url: str | None = None) -> ty.Any:
    """Return the bus that ``transport_url`` names.

    :param conf: the service's own options.
    :param url: overrides the option, e.g. ``fake://`` in one process.
    """
    for name in _GLOBAL_OPTS:
        _register_global_opts(conf, name)
    messaging.set_transport_defaults(EXCHANGE)
    _register_tracing(conf)
    transport = messaging.get_rpc_transport(conf, url=url)
    if messaging.TransportURL.parse(conf, url).transport in _IN_MEMORY:
        _in_memory.add(transport)
    return transport


def in_memory(transport: ty.Any) -> bool:
    """Return whether a bus does not leave this process."""
    return transport in _in_memory


def _register_tracing(conf: cfg.ConfigOpts) -> None:
    # oslo.messaging 18 reads these options from the transport's own
    # configuration but registers them with the global one only, so that a
    # call fails with any other. Versions without tracing lack the module.
    try:
        tracing = importlib.import_module('oslo_messaging._tracing.client')
    except ImportError:
        return
    conf.register_opts(
        tracing.oslo_messaging_tracing, group='oslo_messaging_tracing'
    )


#: Options that oslo.messaging registers with the process-wide options only,
#: but reads from those its transport was given.
_GLOBAL_OPTS = ('metrics', 'tracing')


def _register_global_opts(conf: cfg.ConfigOpts, name: str) -> None:
    group = 'oslo_messaging_' + name
    try:
        module = importlib.import_module('oslo_messaging._%s.client' % name)
    except ModuleNotFoundError:
        # A release without the feature has no options for it either.
        return
    conf.register_opts(getattr(module, group), group=group)


def get_server(
    transport: ty.Any, topic: str, server: str, endpoints: Sequence[object]
) -> ty.Any:
    """Return an RPC server with its own threads, not started.

    :param topic: :data:`COLLECTOR_TOPIC` or :data:`AGENT_TOPIC`.
    :param server: this process's name on the bus; an agent's host name.
    """
    return messaging.get_rpc_server(
        transport,
        messaging.Target(topic=topic, server=server),
        endpoints,
        executor='threading',
        access_policy=messaging.ExplicitRPCAccessPolicy,
    )


def _target(version: str) -> ty.Any:
    return messaging.Target(version=version)


class Caller:
    """The sender of a request; this one is not authenticated.

    :ivar host: the authenticated host; None without authentication.
    """

    host: str | None = None

    def seal(self, method: str, reply: dict[str, ty.Any]) -> dict[str, ty.Any]:
        """Return the reply in the form that the caller can verify."""
        return reply

    def confirm(self) -> None:
        """Record that the request was the newest one of its host."""


ANYBODY = Caller()


class Authenticator:
    """Authenticates requests; this one accepts all of them."""

    def admit(
        self,
        method: str,
        arguments: dict[str, ty.Any],
        signature: object,
        reads: bool,
    ) -> Caller:
        """Return the sender of a request.

        :param signature: of the request, None without any.
        :param reads: whether it changes nothing.
        :raises errors.Unauthenticated: when it must not be answered.
        """
        return ANYBODY


def _check_host(caller: Caller, host: object) -> None:
    if caller.host is not None and host != caller.host:
        raise errors.Unauthenticated(
            '%s may send for itself only, not for %s'
            % (ascii(caller.host), ascii(host)[:64])
        )


class CollectorEndpoint(abc.ABC):
    """Base of the collector's side: turns JSON into messages and back.

    :cvar authenticator: returns who sent a request. The default accepts
        any sender, which is for a bus in memory.
    """

    target = _target(COLLECTOR_VERSION)
    authenticator = Authenticator()

    # Expected failures, such as an unreachable database, are returned to the
    # caller without a traceback in this side's log.
    @messaging.expose
    @messaging.expected_exceptions(errors.VschedError)
    def report(
        self, ctxt: dict[str, ty.Any], report: dict[str, ty.Any]
    ) -> dict[str, ty.Any]:
        """Store a batch; answer only when it is committed."""
        request_context.incoming(ctxt)
        caller = self.authenticator.admit(
            'report', {'report': report}, ctxt.get(signing.FIELD), reads=False
        )
        _check_host(
            caller, report.get('host') if isinstance(report, dict) else None
        )
        try:
            batch = messages.Report.from_dict(report)
        except wire.MalformedMessage as problem:
            reply = self.on_malformed_report(report, problem)
        else:
            reply = self.on_report(batch)
        if reply.epoch_state is messages.EpochState.CURRENT:
            caller.confirm()
        return caller.seal('report', reply.to_dict())

    @messaging.expose
    @messaging.expected_exceptions(errors.VschedError)
    def overrides(
        self, ctxt: dict[str, ty.Any], host: str
    ) -> dict[str, ty.Any]:
        """Return every override of one host."""
        return self._answer('overrides', ctxt, host, self.on_overrides)

    @messaging.expose
    @messaging.expected_exceptions(errors.VschedError)
    def jobs(self, ctxt: dict[str, ty.Any], host: str) -> dict[str, ty.Any]:
        """Return every unfinished job of one host."""
        return self._answer('jobs', ctxt, host, self.on_jobs)

    def _answer(
        self,
        method: str,
        ctxt: dict[str, ty.Any],
        host: str,
        find: ty.Callable[[str], wire.Message],
    ) -> dict[str, ty.Any]:
        request_context.incoming(ctxt)
        caller = self.authenticator.admit(
            method, {'host': host}, ctxt.get(signing.FIELD), reads=True
        )
        _check_host(caller, host)
        return caller.seal(method, find(host).to_dict())

    @abc.abstractmethod
    def on_report(self, report: messages.Report) -> messages.ReportReply:
        """Store a batch and return the reply."""

    def on_malformed_report(
        self, report: object, problem: wire.MalformedMessage
    ) -> messages.ReportReply:
        """Handle a batch that cannot be parsed.

        An agent sends a batch until it is answered, so raising, as this
        does, blocks all later ones.
        """
        raise problem

    @abc.abstractmethod
    def on_overrides(self, host: str) -> messages.Overrides:
        """Return a host's overrides."""

    @abc.abstractmethod
    def on_jobs(self, host: str) -> messages.Jobs:
        """Return a host's unfinished jobs."""


class AgentEndpoint(abc.ABC):
    """Base of the agent's side."""

    target = _target(AGENT_VERSION)

    @messaging.expose
    def overrides_changed(
        self, ctxt: dict[str, ty.Any], generation: int
    ) -> None:
        """Notify that the host's overrides have a newer generation."""
        request_context.incoming(ctxt)
        self.on_overrides_changed(generation)

    @messaging.expose
    def jobs_changed(self, ctxt: dict[str, ty.Any], generation: int) -> None:
        """Notify that the host's jobs have a newer generation."""
        request_context.incoming(ctxt)
        self.on_jobs_changed(generation)

    @abc.abstractmethod
    def on_jobs_changed(self, generation: int) -> None:
        """Handle the notification."""

    @abc.abstractmethod
    def on_overrides_changed(self, generation: int) -> None:
        """Handle the notification."""


T = ty.TypeVar('T')


class _OldCollector(errors.Unreachable):
    """The other side does not have this version."""


def _kind(error: Exception) -> str:
    """Return the name of an error's class, also of a remote one."""
    return str(getattr(error, 'exc_type', None) or type(error).__name__)


def _detail(error: Exception) -> str:
    return str(getattr(error, 'value', None) or error)


class _Bounded:
    """Limits the time of each use of the bus.

    oslo.messaging tries to connect without limit before the timeout of a call
    begins. A call that hangs goes on trying; until it ends, others fail at
    once.

    :param whom: the other side, for messages.
    :param timeout_s: longest wait in seconds.
    """

    def __init__(self, whom: str, timeout_s: float) -> None:
        self._whom = whom
        self._timeout_s = timeout_s
        self._calls = bounded_calls.BoundedCalls('vsched-bus-' + whom)

    def run(self, what: str, use: ty.Callable[[], T]) -> T:
        """Return the result of ``use``.

        :raises errors.Unreachable: when it failed for any reason, or did
            not end in time: whether it arrived is unknown.
        """
        try:
            return self._calls.run(self._whom, self._timeout_s, use)
        except bounded_calls.CallTimedOut as late:
            raise errors.Unreachable(
                '%s: %s: %s' % (self._whom, what, late)
            ) from None
        except Exception as problem:
            if _kind(problem) == errors.Unauthenticated.__name__:
                raise errors.Unauthenticated(
                    '%s: %s: %s' % (self._whom, what, _detail(problem))
                ) from problem
            if _kind(problem) == 'UnsupportedVersion':
                raise _OldCollector(str(problem)) from problem
            # The bus's own errors, those of the driver below it and those
            # that the other side raised have no base class in common.
            raise errors.Unreachable(
                '%s: %s: %s: %s'
                % (self._whom, what, type(problem).__name__, problem)
            ) from problem


class CollectorClient:
    """The agent's client of the collector.

    :param timeout_s: longest wait for an answer in seconds.
    :param signer: signs requests and verifies replies; None on a bus in
        memory.
    :param version: of the collector's interface; the newest that it has
        when None.
    :param clock: monotonic, in seconds.
    """

    def __init__(
        self,
        transport: ty.Any,
        timeout_s: int = REPORT_TIMEOUT_S,
        signer: signing.Signer | None = None,
        version: str | None = None,
        clock: ty.Callable[[], float] = time.monotonic,
    ) -> None:
        self._signer = signer
        self._versions = COLLECTOR_VERSIONS if version is None else (version,)
        self._clock = clock
        self._old_until_s: float | None = None
        self._client = messaging.get_rpc_client(
            transport,
            messaging.Target(topic=COLLECTOR_TOPIC, version=self._versions[0]),
            timeout=timeout_s,
            retry=0,
        )
        # The call's own timeout has the better message: it should come first.
        self._bounded = _Bounded('collector', timeout_s + 1)

    def report(self, report: messages.Report) -> messages.ReportReply:
        """Deliver one batch.

        :raises errors.Unreachable: when it is not known to be stored.
        :raises wire.MalformedMessage: when the answer is invalid.
        """
        return messages.ReportReply.from_dict(
            self._call('report', report=report.to_dict())
        )

    def overrides(self, host: str) -> messages.Overrides:
        """Fetch a host's overrides.

        :raises errors.Unreachable: without an answer.
        :raises wire.MalformedMessage: when the answer is invalid.
        """
        return messages.Overrides.from_dict(self._call('overrides', host=host))

    def jobs(self, host: str) -> messages.Jobs:
        """Fetch a host's unfinished jobs.

        :raises errors.Unreachable: without an answer.
        :raises wire.MalformedMessage: when the answer is invalid.
        """
        return messages.Jobs.from_dict(self._call('jobs', host=host))

    def _call(self, method: str, **arguments: ty.Any) -> ty.Any:
        newest, oldest = self._versions[0], self._versions[-1]
        if self._old_until_s is not None and (
            self._clock() < self._old_until_s
        ):
            return self._call_version(oldest, method, arguments)
        try:
            return self._call_version(newest, method, arguments)
        except _OldCollector:
            if newest == oldest:
                raise
        self._old_until_s = self._clock() + OLD_VERSION_S
        return self._call_version(oldest, method, arguments)

    def _call_version(
        self, version: str, method: str, arguments: dict[str, ty.Any]
    ) -> ty.Any:
        context = request_context.outgoing()
        signed = None
        if self._signer is not None:
            signed = self._signer.sign(method, arguments)
            if signed is not None:
                context[signing.FIELD] = signed[1].to_dict()
        reply = self._bounded.run(
            method,
            lambda: self._client.prepare(version=version).call(
                context, method, **arguments
            ),
        )
        if self._signer is None:
            return reply
        return self._signer.check(method, signed, reply)


class AgentClient:
    """How the API reaches an agent.

    :param timeout_s: longest wait for the bus to take a message, in seconds.
    """

    def __init__(
        self, transport: ty.Any, timeout_s: float = CAST_TIMEOUT_S
    ) -> None:
        self._client = messaging.get_rpc_client(
            transport,
            messaging.Target(topic=AGENT_TOPIC, version=AGENT_VERSION),
            retry=0,
        )
        self._bounded = _Bounded('agent', timeout_s)

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

# SPDX-License-Identifier: Apache-2.0

"""The bus: transports, servers and clients of oslo.messaging.

The only module below the services that knows oslo.messaging. What agents and
collectors ask of each other is in :mod:`vsched_lib.contract.collector_rpc`
and :mod:`vsched_lib.contract.agent_rpc`.
"""

from collections.abc import Sequence
import importlib
import threading
import typing as ty
import weakref

from oslo_config import cfg
from oslo_service import backend

# oslo.messaging imports oslo.service, which selects eventlet unless another
# backend has been selected before.
backend.register_backend_default_hook(lambda: backend.BackendType.THREADING)

import oslo_messaging as messaging  # noqa: E402
from oslo_messaging import opts  # noqa: E402
from oslo_messaging.rpc import server as rpc_server  # noqa: E402

from vsched_lib import bounded_calls  # noqa: E402
from vsched_lib.contract import errors  # noqa: E402

EXCHANGE = 'vsched'

#: Seconds for which a reply waits for its queue.
REPLY_WAIT_S = 0

#: How soon connections to the broker are tried again after a failure, in
#: seconds: the first wait, what each one adds, and the longest. A wait of
#: oslo.messaging has up to its first value more than the longest.
RETRY_S = (1, 1, 4)
#: What oslo.messaging waits besides, before it closes a connection.
_RECONNECT_DELAY_S = 1.0
#: The longest time from the broker's return until consumers try to connect.
#: One error is found in the old connection, and one when it is opened.
RECONNECT_S = RETRY_S[0] + RETRY_S[2] + 2 * _RECONNECT_DELAY_S

#: By option of oslo.messaging's driver, our default.
_RABBIT_DEFAULTS = {
    # oslo.messaging tries for a minute to send a reply to a queue that does
    # not exist, in a thread that answers requests. A request names the queue:
    # invented ones would keep all threads busy. Who still wants the reply
    # asks again.
    'kombu_missing_consumer_retry_timeout': REPLY_WAIT_S,
    # The defaults add two seconds to each wait, up to half a minute.
    'kombu_reconnect_delay': _RECONNECT_DELAY_S,
    'rabbit_retry_interval': RETRY_S[0],
    'rabbit_retry_backoff': RETRY_S[1],
    'rabbit_interval_max': RETRY_S[2],
}

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
    _set_rabbit_defaults(conf)
    _register_tracing(conf)
    transport = messaging.get_rpc_transport(conf, url=url)
    if messaging.TransportURL.parse(conf, url).transport in _IN_MEMORY:
        _in_memory.add(transport)
    return transport


def _set_rabbit_defaults(conf: cfg.ConfigOpts) -> None:
    group = 'oslo_messaging_rabbit'
    for listed, options in opts.list_opts():
        if listed == group:
            conf.register_opts(
                [one for one in options if one.name in _RABBIT_DEFAULTS],
                group=group,
            )
    for name, value in _RABBIT_DEFAULTS.items():
        conf.set_default(name, value, group=group)


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

    It takes no request off the bus while all of its threads, which
    ``executor_thread_pool_size`` limits, are busy.

    :param topic: of the collector or of agents.
    :param server: this process's name on the bus; an agent's host name.
    """
    made = messaging.get_rpc_server(
        transport,
        messaging.Target(topic=topic, server=server),
        endpoints,
        executor='threading',
        access_policy=messaging.ExplicitRPCAccessPolicy,
        server_cls=_Server,
    )
    made.dispatcher = _WithoutHeartbeats(made.dispatcher)
    return made


class _Server(rpc_server.RPCServer):  # type: ignore[misc]
    """An RPC server that accepts no more requests than it has threads.

    oslo.messaging acknowledges a request when it has read it and queues it
    without limit, whatever ``rabbit_qos_prefetch_count`` is: that counts
    requests without an acknowledgement. A server that is too slow would take
    requests from the others, have them lost when it is killed, and answer
    long after the callers have given up. While the thread that reads waits,
    the broker keeps the requests, up to the prefetch count of them ready in
    this server's connection.
    """

    def __init__(self, *args: ty.Any) -> None:
        super().__init__(*args)
        self._free = threading.Semaphore(self.conf.executor_thread_pool_size)

    def _create_listener(self) -> ty.Any:
        listener = super()._create_listener()
        _send_every_reply(listener)
        return listener

    def _on_incoming(self, incoming: ty.Any) -> None:
        self._free.acquire()
        super()._on_incoming(incoming)

    def _process_incoming(self, incoming: ty.Any) -> None:
        try:
            super()._process_incoming(incoming)
        finally:
            self._free.release()


def _send_every_reply(listener: ty.Any) -> None:
    # The driver remembers for a minute which queues of replies were missing,
    # and drops all replies to them: each would be tried for as long as
    # kombu_missing_consumer_retry_timeout. After the broker has returned, a
    # queue that was missing is there again a moment later, and its agent
    # would get no reply from this process for that minute. Without a
    # timeout (REPLY_WAIT_S) there is nothing to save.
    inner: ty.Any = getattr(listener, '_poll_style_listener', None)
    if (
        hasattr(inner, '_obsolete_reply_queues')
        and not inner.driver.missing_destination_retry_timeout
    ):
        inner._obsolete_reply_queues = _NoObsoleteQueues()


class _NoObsoleteQueues:
    """Takes the place of the driver's list of missing queues."""

    def reply_q_valid(self, reply_q: str, msg_id: str) -> bool:
        """Return whether a reply is to be sent."""
        return True

    def add(self, reply_q: str, msg_id: str) -> None:
        """Forget that a queue was missing; the driver logs it."""


class _WithoutHeartbeats:
    """A dispatcher that sends callers no heartbeats.

    A request may ask for heartbeats until it is answered. oslo.messaging
    starts a thread for them before it looks for the method, and does not end
    that thread when there is no such method. Any node on the bus could
    exhaust the threads of a service that way. Clients of vsched ask for none.

    :param dispatcher: of oslo.messaging.
    """

    def __init__(self, dispatcher: ty.Any) -> None:
        self._dispatcher = dispatcher

    def dispatch(self, incoming: ty.Any) -> ty.Any:
        """Return what the method of a request returns.

        :param incoming: the request as received.
        """
        incoming.client_timeout = None
        return self._dispatcher.dispatch(incoming)


def get_client(
    transport: ty.Any,
    topic: str,
    version: str,
    timeout_s: int | None = None,
    must_arrive: bool = False,
) -> ty.Any:
    """Return an RPC client that tries once.

    :param version: of the interface on this topic.
    :param timeout_s: longest wait for an answer in seconds; None for the
        default of oslo.messaging.
    :param must_arrive: whether a request without a queue that takes it
        fails. Otherwise the broker drops it.
    """
    return messaging.get_rpc_client(
        transport,
        messaging.Target(topic=topic, version=version),
        timeout=timeout_s,
        retry=0,
        transport_options=messaging.TransportOptions(
            at_least_once=must_arrive
        ),
    )


def target(version: str) -> ty.Any:
    """Return the ``target`` of an endpoint.

    :param version: the newest version that it implements.
    """
    return messaging.Target(version=version)


#: Decorates the methods of an endpoint that others may call.
expose = messaging.expose

#: Decorates exposed methods whose expected failures, such as an unreachable
#: database, are returned to the caller without a traceback in this side's
#: log.
expected_errors = messaging.expected_exceptions(errors.VschedError)


T = ty.TypeVar('T')


class UnsupportedVersion(errors.Unreachable):
    """The other side does not have this version."""


#: Raised on this side when the broker does not answer, or has no queue.
_NOT_TAKEN = (
    messaging.MessageDeliveryFailure,
    messaging.exceptions.MessageUndeliverable,
)


def _kind(error: Exception) -> str:
    """Return the name of an error's class, also of a remote one."""
    return str(getattr(error, 'exc_type', None) or type(error).__name__)


def _detail(error: Exception) -> str:
    return str(getattr(error, 'value', None) or error)


class Bounded:
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

        :raises UnsupportedVersion: when the other side is older.
        :raises errors.Unauthenticated: when the other side refused it.
        :raises errors.BusUnavailable: when the broker did not take the
            request, or not in time; in that case it may still arrive.
        :raises errors.Unreachable: when it failed for any other reason:
            whether it arrived is unknown.
        """
        try:
            return self._calls.run(self._whom, self._timeout_s, use)
        except bounded_calls.CallTimedOut as late:
            # The timeout of an answer is shorter: what has not returned has
            # waited for a connection for CONNECT_S or longer.
            raise errors.BusUnavailable(
                '%s: %s: %s' % (self._whom, what, late)
            ) from None
        except Exception as problem:
            if _kind(problem) == errors.Unauthenticated.__name__:
                raise errors.Unauthenticated(
                    '%s: %s: %s' % (self._whom, what, _detail(problem))
                ) from problem
            if _kind(problem) == 'UnsupportedVersion':
                raise UnsupportedVersion(str(problem)) from problem
            # The bus's own errors, those of the driver below it and those
            # that the other side raised have no base class in common.
            kind = (
                errors.BusUnavailable
                if isinstance(problem, _NOT_TAKEN)
                else errors.Unreachable
            )
            raise kind(
                '%s: %s: %s: %s'
                % (self._whom, what, type(problem).__name__, problem)
            ) from problem

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

"""Topics, versions and clients of the bus.

The only module below the services that knows oslo.messaging. Agents call the
collector; the API casts to agents, and never waits for one: what it wants is
in the database, and an agent that missed the cast learns of it from the
reply to its next report.

collector 1.0  report(report), overrides(host)
          1.1  jobs(host)
agent     1.0  overrides_changed(generation)
          1.1  jobs_changed(generation)

What messages gained since, such as balloons in reports and in overrides,
needs no version: readers ignore keys that they do not know, and an agent
that tells of no balloons is given no orders for them.
"""

import abc
from collections.abc import Sequence
import importlib
import queue
import threading
import typing as ty

from oslo_config import cfg
from oslo_service import backend

# oslo.messaging imports oslo.service, which settles for eventlet unless
# somebody has said otherwise before.
backend.register_backend_default_hook(
    lambda: backend.BackendType.THREADING)

import oslo_messaging as messaging  # noqa: E402

from vsched_lib.contract import errors  # noqa: E402
from vsched_lib.contract import messages  # noqa: E402
from vsched_lib.contract import wire  # noqa: E402

COLLECTOR_TOPIC = 'vsched-collector'
COLLECTOR_VERSION = '1.1'
AGENT_TOPIC = 'vsched-agent'
AGENT_VERSION = '1.1'
EXCHANGE = 'vsched'

#: How long an agent waits for the collector before it keeps the batch and
#: tries again later, in seconds.
REPORT_TIMEOUT_S = 10

#: How long the API lets the bus take a message for an agent, in seconds.
CAST_TIMEOUT_S = 3


def get_transport(conf: cfg.ConfigOpts,
                  url: str | None = None) -> ty.Any:
    """The bus that ``transport_url`` names.

    :param conf: the service's own options.
    :param url: overrides the option, e.g. ``fake://`` in one process.
    """
    for name in _GLOBAL_OPTS:
        _register_global_opts(conf, name)
    messaging.set_transport_defaults(EXCHANGE)
    _register_tracing(conf)
    return messaging.get_rpc_transport(conf, url=url)


def _register_tracing(conf: cfg.ConfigOpts) -> None:
    # oslo.messaging 18 reads these options from the transport's own
    # configuration but registers them with the global one only, so that a
    # call fails with any other. Versions without tracing lack the module.
    try:
        tracing = importlib.import_module('oslo_messaging._tracing.client')
    except ImportError:
        return
    conf.register_opts(
        tracing.oslo_messaging_tracing, group='oslo_messaging_tracing')


#: Options that oslo.messaging registers with the process-wide options only,
#: but reads from those its transport was given.
_GLOBAL_OPTS = ('metrics', 'tracing')


def _register_global_opts(conf: cfg.ConfigOpts, name: str) -> None:
    group = 'oslo_messaging_' + name
    try:
        module = importlib.import_module(
            'oslo_messaging._%s.client' % name)
    except ModuleNotFoundError:
        # A release without the feature has no options for it either.
        return
    conf.register_opts(getattr(module, group), group=group)


def get_server(transport: ty.Any, topic: str, server: str,
               endpoints: Sequence[object]) -> ty.Any:
    """An RPC server on its own threads; the caller starts and stops it.

    :param topic: :data:`COLLECTOR_TOPIC` or :data:`AGENT_TOPIC`.
    :param server: this process's name on the bus; an agent's host name.
    """
    return messaging.get_rpc_server(
        transport, messaging.Target(topic=topic, server=server), endpoints,
        executor='threading',
        access_policy=messaging.ExplicitRPCAccessPolicy)


def _target(version: str) -> ty.Any:
    return messaging.Target(version=version)


class CollectorEndpoint(abc.ABC):
    """Base of the collector's side: turns JSON into messages and back."""

    target = _target(COLLECTOR_VERSION)

    # Named failures, such as a database that is away, are the caller's to
    # judge: they go to it without a traceback in this side's log.
    @messaging.expose
    @messaging.expected_exceptions(errors.VschedError)
    def report(self, ctxt: dict[str, ty.Any],
               report: dict[str, ty.Any]) -> dict[str, ty.Any]:
        """Store a batch; answers only once it is stored for good."""
        try:
            batch = messages.Report.from_dict(report)
        except wire.MalformedMessage as problem:
            return self.on_malformed_report(report, problem).to_dict()
        return self.on_report(batch).to_dict()

    @messaging.expose
    @messaging.expected_exceptions(errors.VschedError)
    def overrides(self, ctxt: dict[str, ty.Any],
                  host: str) -> dict[str, ty.Any]:
        """Every override of one host."""
        return self.on_overrides(host).to_dict()

    @messaging.expose
    @messaging.expected_exceptions(errors.VschedError)
    def jobs(self, ctxt: dict[str, ty.Any],
             host: str) -> dict[str, ty.Any]:
        """Every unfinished job of one host."""
        return self.on_jobs(host).to_dict()

    @abc.abstractmethod
    def on_report(self, report: messages.Report) -> messages.ReportReply:
        """What the collector does with a batch."""

    def on_malformed_report(
            self, report: object,
            problem: wire.MalformedMessage) -> messages.ReportReply:
        """What the collector does with a batch it can not read.

        An agent sends a batch until it is answered, so raising, as this
        does, holds up all that come after it.
        """
        raise problem

    @abc.abstractmethod
    def on_overrides(self, host: str) -> messages.Overrides:
        """What the collector knows of a host's overrides."""

    @abc.abstractmethod
    def on_jobs(self, host: str) -> messages.Jobs:
        """What the collector knows of a host's unfinished jobs."""


class AgentEndpoint(abc.ABC):
    """Base of the agent's side."""

    target = _target(AGENT_VERSION)

    @messaging.expose
    def overrides_changed(self, ctxt: dict[str, ty.Any],
                          generation: int) -> None:
        """The host's overrides have a newer generation."""
        self.on_overrides_changed(generation)

    @messaging.expose
    def jobs_changed(self, ctxt: dict[str, ty.Any],
                     generation: int) -> None:
        """The host's jobs have a newer generation."""
        self.on_jobs_changed(generation)

    @abc.abstractmethod
    def on_jobs_changed(self, generation: int) -> None:
        """What the agent does about it."""

    @abc.abstractmethod
    def on_overrides_changed(self, generation: int) -> None:
        """What the agent does about it."""


T = ty.TypeVar('T')


class _Bounded:
    """Lets no use of the bus last longer than its timeout.

    oslo.messaging tries to connect for ever before the timeout of a call
    even begins, so each use has a thread of its own. One that got stuck goes
    on trying; until it is through, others fail at once instead of joining
    it.

    :param whom: the other side, for messages.
    :param timeout_s: longest wait in seconds.
    """

    def __init__(self, whom: str, timeout_s: float) -> None:
        self._whom = whom
        self._timeout_s = timeout_s
        self._stuck: threading.Thread | None = None

    def run(self, what: str, use: ty.Callable[[], T]) -> T:
        """What ``use`` returns.

        :raises errors.Unreachable: when it failed, for whatever reason, or
            is not through in time: it is not known to have arrived.
        """
        if self._stuck is not None and self._stuck.is_alive():
            raise errors.Unreachable(
                '%s: %s: still trying to connect' % (self._whom, what))
        outcome: queue.SimpleQueue[tuple[T] | Exception] = queue.SimpleQueue()

        def attempt() -> None:
            try:
                outcome.put((use(),))
            except Exception as error:
                outcome.put(error)

        thread = threading.Thread(
            target=attempt, name='vsched-bus-' + what, daemon=True)
        thread.start()
        try:
            found = outcome.get(timeout=self._timeout_s)
        except queue.Empty:
            self._stuck = thread
            raise errors.Unreachable('%s: %s: no answer in %g s' % (
                self._whom, what, self._timeout_s)) from None
        if isinstance(found, Exception):
            # The bus's own errors, those of the driver below it and those
            # that the other side raised have no base class in common.
            raise errors.Unreachable('%s: %s: %s: %s' % (
                self._whom, what, type(found).__name__, found)) from found
        return found[0]


class CollectorClient:
    """How an agent reaches the collector.

    :param timeout_s: longest wait for an answer in seconds.
    """

    def __init__(self, transport: ty.Any,
                 timeout_s: int = REPORT_TIMEOUT_S) -> None:
        self._client = messaging.get_rpc_client(
            transport,
            messaging.Target(
                topic=COLLECTOR_TOPIC, version=COLLECTOR_VERSION),
            timeout=timeout_s, retry=0)
        # The call's own timeout, which says more, should come first.
        self._bounded = _Bounded('collector', timeout_s + 1)

    def report(self, report: messages.Report) -> messages.ReportReply:
        """Deliver one batch.

        :raises errors.Unreachable: when it is not known to be stored.
        :raises wire.MalformedMessage: when the answer makes no sense.
        """
        return messages.ReportReply.from_dict(
            self._call('report', report=report.to_dict()))

    def overrides(self, host: str) -> messages.Overrides:
        """Ask for a host's overrides.

        :raises errors.Unreachable: when nobody answered.
        :raises wire.MalformedMessage: when the answer makes no sense.
        """
        return messages.Overrides.from_dict(
            self._call('overrides', host=host))

    def jobs(self, host: str) -> messages.Jobs:
        """Ask for a host's unfinished jobs.

        :raises errors.Unreachable: when nobody answered.
        :raises wire.MalformedMessage: when the answer makes no sense.
        """
        return messages.Jobs.from_dict(self._call('jobs', host=host))

    def _call(self, method: str, **arguments: ty.Any) -> ty.Any:
        return self._bounded.run(
            method, lambda: self._client.call({}, method, **arguments))


class AgentClient:
    """How the API reaches an agent.

    :param timeout_s: longest wait for the bus to take a message, in seconds.
    """

    def __init__(self, transport: ty.Any,
                 timeout_s: float = CAST_TIMEOUT_S) -> None:
        self._client = messaging.get_rpc_client(
            transport,
            messaging.Target(topic=AGENT_TOPIC, version=AGENT_VERSION),
            retry=0)
        self._bounded = _Bounded('agent', timeout_s)

    def overrides_changed(self, host: str, generation: int) -> None:
        """Tell a host's agent to fetch its overrides now.

        :raises errors.Unreachable: when the bus took no message; the agent
            learns of it from the reply to its next report.
        """
        self._cast(host, 'overrides_changed', generation)

    def jobs_changed(self, host: str, generation: int) -> None:
        """Tell a host's agent to fetch its jobs now.

        :raises errors.Unreachable: likewise.
        """
        self._cast(host, 'jobs_changed', generation)

    def _cast(self, host: str, method: str, generation: int) -> None:
        self._bounded.run(
            '%s on %s' % (method, host),
            lambda: self._client.prepare(server=host).cast(
                {}, method, generation=generation))

# SPDX-License-Identifier: Apache-2.0

"""The metrics of one collector, and the server from which they are read.

They are of the process: counters begin at 0 when it starts. Several
collectors each have an endpoint of their own, and Prometheus adds them up.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import ssl
import sys
import threading
import time
import typing as ty
from wsgiref import simple_server

from oslo_config import cfg
from oslo_log import log as logging
import prometheus_client
from prometheus_client import core
from prometheus_client import registry as registries

from vsched_api.db import errors as db_errors
from vsched_api.metric_families import collector as families
from vsched_api.metric_families import family
from vsched_lib.contract import errors
from vsched_lib.contract import messages

LOG = logging.getLogger(__name__)

#: Why a batch was not stored.
INVALID = 'invalid'
DATABASE = 'database'
DEFECT = 'defect'
_EPOCHS = {
    messages.EpochState.UNOPENED: 'unopened',
    messages.EpochState.REPLACED: 'replaced',
}
CAUSES = (INVALID, *_EPOCHS.values(), DATABASE, DEFECT)

_CODES = frozenset(errors.Code)
_OTHER = 'other'

#: How long a client may take to send its request, in seconds.
_CLIENT_TIMEOUT_S = 10


class UnusableEndpoint(errors.VschedError):
    """The metrics cannot be served as the options require."""

    code = errors.Code.INTERNAL


class Requests(ty.Protocol):
    """What checks the signatures of requests."""

    @property
    def refused(self) -> int:
        """Return how many requests were refused."""

    @property
    def unsigned(self) -> int:
        """Return how many requests without a signature were accepted."""


class Outcome:
    """What became of a batch.

    :ivar reply: the answer to its agent.
    """

    def __init__(self) -> None:
        self.reply: messages.ReportReply | None = None
        self.invalid = False

    def reject(self) -> None:
        """Record that the batch can never be stored."""
        self.invalid = True


class Metrics:
    """Counts and times the work of a collector. Safe from any thread.

    :param tasks: the names of its periodic tasks.
    :param clock: steady, in seconds.
    :param now: seconds since the epoch.
    """

    def __init__(
        self,
        tasks: Sequence[str] = (),
        clock: Callable[[], float] = time.perf_counter,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._now = now
        self._requests: Requests | None = None
        made = self._registry = registries.CollectorRegistry(
            auto_describe=False
        )
        self._stored = families.BATCHES_STORED.counter(made)
        self._repeated = families.BATCHES_REPEATED.counter(made)
        self._refused = families.BATCHES_REFUSED.counter(made)
        self._duration = families.BATCH_DURATION.histogram(made)
        self._outbox_age = families.OUTBOX_AGE.histogram(made)
        self._samples = families.SAMPLES_STORED.counter(made)
        self._events = families.EVENTS_STORED.counter(made)
        self._deleted = families.ROWS_DELETED.counter(made)
        self._task_duration = families.TASK_DURATION.histogram(made)
        self._task_success = families.TASK_SUCCESS.gauge(made)
        self._task_failures = families.TASK_FAILURES.counter(made)
        made.register(_Rest(self))
        # A rate needs the 0 before the first one.
        for cause in CAUSES:
            self._refused.labels(cause)
        for subject in ('instances', 'hosts'):
            self._samples.labels(subject)
        for code in (*_CODES, _OTHER):
            self._events.labels(code)
        for task in tasks:
            self.add_task(task)
        prometheus_client.ProcessCollector(registry=made)

    def add_task(self, task: str) -> None:
        """Expose a periodic task before it has run."""
        self._task_duration.labels(task)
        self._task_success.labels(task).set(self._now())
        self._task_failures.labels(task)

    def watch(self, requests: Requests) -> None:
        """Expose how many requests were refused, or were not signed."""
        self._requests = requests

    @contextlib.contextmanager
    def batch(self, report: messages.Report) -> Iterator[Outcome]:
        """Count and time a batch while it is stored."""
        outcome = Outcome()
        began_s = self._clock()
        try:
            yield outcome
        except db_errors.DatabaseUnavailable:
            self.refuse(DATABASE)
            raise
        except Exception:
            self.refuse(INVALID if outcome.invalid else DEFECT)
            raise
        finally:
            self._duration.observe(self._clock() - began_s)
        if outcome.invalid:
            self.refuse(INVALID)
        elif outcome.reply is not None:
            self._count(report, outcome.reply)

    def _count(
        self, report: messages.Report, reply: messages.ReportReply
    ) -> None:
        if reply.epoch_state in _EPOCHS:
            self.refuse(_EPOCHS[reply.epoch_state])
            return
        if reply.duplicate:
            self._repeated.inc()
            return
        self._stored.inc()
        if report.sent_at is not None:
            self._outbox_age.observe(max(0.0, report.sent_at - report.at))
        if report.usage:
            self._samples.labels('instances').inc(len(report.usage))
        if report.host_usage:
            self._samples.labels('hosts').inc(len(report.host_usage))
        for event in report.events:
            self._events.labels(
                event.code if event.code in _CODES else _OTHER
            ).inc()

    def refuse(self, cause: str) -> None:
        """Count a batch that was not stored.

        :param cause: one of :data:`CAUSES`.
        """
        self._refused.labels(cause).inc()

    @contextlib.contextmanager
    def task(self, task: str) -> Iterator[None]:
        """Count and time a run of a periodic task."""
        began_s = self._clock()
        try:
            yield
        except Exception:
            self._task_failures.labels(task).inc()
            raise
        else:
            self._task_success.labels(task).set(self._now())
        finally:
            self._task_duration.labels(task).observe(self._clock() - began_s)

    def delete(self, counts: Mapping[str, int]) -> None:
        """Count rows that were deleted.

        :param counts: by kind; the kinds are those of
            :func:`vsched_api.operations.retention.purge`.
        """
        for kind, count in counts.items():
            self._deleted.labels(kind).inc(count)

    def exposed(self) -> registries.CollectorRegistry:
        """Return what is served."""
        outer = registries.CollectorRegistry(auto_describe=False)
        outer.register(family.Exposed(self._registry))
        return outer

    def _rest(self) -> Iterator[core.Metric]:
        info = families.INFO.samples()
        info.add_metric([family.version()], 1)
        yield info
        watched = self._requests
        for which, count in (
            (families.REQUESTS_REFUSED, watched.refused if watched else 0),
            (families.REQUESTS_UNSIGNED, watched.unsigned if watched else 0),
        ):
            made = which.samples()
            made.add_metric([], count)
            yield made


class _Rest(registries.Collector):
    """What is known at the time of a scrape only."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[core.Metric]:
        return self._metrics._rest()


class Server:
    """Serves metrics to Prometheus on ``[collector] metrics_bind_port``.

    :param conf: has the options of :mod:`vsched_api.conf.collector`.
    """

    def __init__(self, conf: cfg.ConfigOpts, metrics: Metrics) -> None:
        self._options = conf.collector
        self._metrics = metrics
        self._server: simple_server.WSGIServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """Return the port while it serves; 0 otherwise."""
        return 0 if self._server is None else self._server.server_port

    def start(self) -> None:
        """Start to serve; does nothing without a port.

        :raises UnusableEndpoint: when the options contradict each other, or
            the address or a file cannot be used.
        """
        options = self._options
        if not options.metrics_bind_port:
            return
        if bool(options.metrics_cert_file) != bool(options.metrics_key_file):
            raise UnusableEndpoint(
                '[collector] metrics_cert_file and metrics_key_file are set '
                'both, or none of them'
            )
        if options.metrics_client_ca_file and not options.metrics_cert_file:
            raise UnusableEndpoint(
                '[collector] metrics_client_ca_file needs metrics_cert_file'
            )
        try:
            self._server, self._thread = prometheus_client.start_http_server(
                options.metrics_bind_port,
                options.metrics_bind_host,
                self._metrics.exposed(),
                options.metrics_cert_file,
                options.metrics_key_file,
                options.metrics_client_ca_file,
                client_auth_required=bool(options.metrics_client_ca_file),
            )
        except OSError as problem:
            # ssl.SSLError is one, too.
            raise UnusableEndpoint(
                'metrics cannot be served on %s port %d: %s'
                % (
                    options.metrics_bind_host,
                    options.metrics_bind_port,
                    problem,
                )
            ) from problem
        _bound(self._server)
        LOG.info(
            'Metrics are served on %s port %d%s',
            options.metrics_bind_host,
            self.port,
            ' over TLS' if options.metrics_cert_file else '',
        )

    def stop(self) -> None:
        """Stop to serve."""
        server, self._server = self._server, None
        if server is None:
            return
        server.shutdown()
        server.server_close()
        if self._thread is not None:
            self._thread.join()


def _bound(server: ty.Any) -> None:
    """Let no client hold up others, or keep a thread for long."""

    class Handler(server.RequestHandlerClass):  # type: ignore[misc]
        timeout = _CLIENT_TIMEOUT_S

    server.RequestHandlerClass = Handler
    server.handle_error = _log_failure
    if isinstance(server.socket, ssl.SSLSocket):
        # A TLS handshake belongs to the thread of its client. typeshed lacks
        # the attribute.
        listening: ty.Any = server.socket
        listening.do_handshake_on_connect = False


def _log_failure(request: object, address: object) -> None:
    # Instead of a traceback: anyone can send what is no request.
    LOG.info('Metrics: a request of %s failed: %s', address, sys.exc_info()[1])

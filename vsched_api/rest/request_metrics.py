# SPDX-License-Identifier: Apache-2.0

"""Count and time the requests that the REST service answers.

uWSGI runs several workers, and each scrape is answered by one of them. With
PROMETHEUS_MULTIPROC_DIR in the environment, which the sample of uWSGI's
options sets, prometheus_client keeps the figures of each worker in files of
that folder, and a scrape has the sums of all workers.
"""

from collections.abc import Callable
from collections.abc import Iterable
import os
import time
import typing as ty

import flask
import prometheus_client
from prometheus_client import core
from prometheus_client import multiprocess
from prometheus_client import registry as registries
from prometheus_client import values
from werkzeug import wsgi

from vsched_api.metric_families import api
from vsched_lib.metrics import family

#: The variable of prometheus_client with the folder of all processes' files.
FOLDER_VARIABLE = 'PROMETHEUS_MULTIPROC_DIR'

#: The label of requests that no route was found for.
UNMATCHED = 'unmatched'

_ENVIRON_ROUTE = 'vsched.route'
_METHODS = frozenset(
    ('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS')
)
_OTHER = 'other'
#: What an alert selects.
_FAILED = '5xx'


def share(worker: Callable[[], int]) -> None:
    """Share the metrics of the workers of a service, before it forks.

    Does nothing unless the environment names a folder. Its files are removed:
    they are of a service that ran before.

    :param worker: returns the number of the worker that calls it. A worker
        that is started again continues the files of its number.
    :raises OSError: when the folder cannot be used; nothing is shared then.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        for name in os.listdir(folder):
            if name.endswith('.db'):
                os.unlink(os.path.join(folder, name))
    except OSError:
        del os.environ[FOLDER_VARIABLE]
        values.ValueClass = values.MutexValue
        raise
    values.ValueClass = values.MultiProcessValue(  # type: ignore[no-untyped-call]
        worker
    )


class RequestMetrics:
    """The metrics of one application.

    :param clock: steady, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._registry = registries.CollectorRegistry()
        self._requests = api.REQUESTS.counter(self._registry)
        self._duration = api.DURATION.histogram(self._registry)

    @staticmethod
    def note_route() -> None:
        """Keep the route of the current request for its labels."""
        rule = flask.request.url_rule
        if rule is not None:
            # The template: a path would make a series of each instance.
            flask.request.environ[_ENVIRON_ROUTE] = rule.rule

    def wrap(self, app: ty.Any) -> ty.Any:
        """Return a WSGI application whose requests are counted and timed."""

        def counted(environ: dict[str, ty.Any], start: ty.Any) -> ty.Any:
            began_s = self._clock()
            statuses = ['500']

            def keep_status(status: str, *rest: ty.Any) -> ty.Any:
                statuses[0] = status
                return start(status, *rest)

            def ended() -> None:
                self._observe(environ, statuses[0], self._clock() - began_s)

            try:
                answer = app(environ, keep_status)
            except BaseException:
                ended()
                raise
            return wsgi.ClosingIterator(answer, ended)

        return counted

    def _observe(
        self, environ: dict[str, ty.Any], status: str, took_s: float
    ) -> None:
        method = environ.get('REQUEST_METHOD')
        labels = (
            environ.get(_ENVIRON_ROUTE, UNMATCHED),
            method if method in _METHODS else _OTHER,
        )
        self._duration.labels(*labels).observe(took_s)
        self._requests.labels(*labels, status[:1] + 'xx').inc()
        # A rate needs the 0 before the first one.
        self._requests.labels(*labels, _FAILED)

    def collect(self) -> Iterable[core.Metric]:
        """Yield the metrics of all processes of the service."""
        info = api.INFO.samples()
        info.add_metric([family.version()], 1)
        yield info
        if FOLDER_VARIABLE not in os.environ:
            yield from family.without_created(self._registry.collect())
            return
        merged = registries.CollectorRegistry()
        multiprocess.MultiProcessCollector(merged)  # type: ignore[no-untyped-call]
        yield from merged.collect()


def render(metrics: Iterable[core.Metric]) -> bytes:
    """Return metrics in the text format of Prometheus."""

    class Found(registries.Collector):
        def collect(self) -> Iterable[core.Metric]:
            return metrics

    registry = registries.CollectorRegistry(auto_describe=False)
    registry.register(Found())
    return prometheus_client.generate_latest(registry)

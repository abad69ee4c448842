# SPDX-License-Identifier: Apache-2.0

"""What requests to nova-scheduler feel of a service that is away."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import functools
import socket
import statistics
import threading
import time
import typing as ty
import unittest
from unittest import mock


from benchmarks import frame
from benchmarks import nova_hosts
from benchmarks import snapshot
from nova_filters import cache
from vsched_api import app
from vsched_api.collector import endpoint
from vsched_api.tests import base
from vsched_api.tests import database_options
from vsched_api.tests import databases

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

SCALE = 20
HOSTS = 200
PAUSE_S = 0.005

ABOUT = frame.About(
    'Requests of a scheduler while the service is away',
    'A scheduler asks the real service over HTTP for what has changed, and '
    'answers one request after the other: our three filters and four '
    'weighers over %d hosts, with 5 ms between two. Then the service is '
    'stopped (*refused*), then something is in its place that takes '
    'connections and never answers (*hangs*), then it is back; all of that '
    'several times. Each is away for what stands for ten minutes in all: '
    "the interval and ages in the scheduler's options are divided by "
    '%d.\n\n'
    'A request is slowed by the difference of the medians while it is away '
    'and before; the p99 stands beside it, and what two halves of the time '
    'before differ by. What is known counts as *stale* after a while, and '
    'the hosts pass by policy, without being looked at; that one of them '
    'does not is an error. The service is in the same process, so while it '
    'answers it takes time from some requests, as it would not elsewhere: '
    'see the p99. '
    'While the service is away an agent reports a change, and what is '
    'measured in the end is how long it takes to a filter once the service '
    'is back.' % (HOSTS, SCALE),
    (),
    {
        'slowed_ms': 'ms that a request takes longer, the worst of refused '
        'and hangs, stale or not',
        'slowed_p99_ms': 'likewise, of the p99',
        'noise_ms': 'by which halves of the time before differ',
        'caught_up_intervals': 'intervals of asking until a change is known, '
        'the longest',
    },
    targets=(
        frame.at_most('slowed_ms', 1, 'ms', 'issue 5'),
        frame.at_most('slowed_p99_ms', 1, 'ms', 'issue 5'),
    ),
)

#: What the scheduler's options are in seconds, scaled.
OPTIONS_S = {
    'refresh_interval': 2.0 / SCALE,
    'max_age': 60.0 / SCALE,
    # In whole seconds.
    'timeout': 1,
}

#: For how long what was heard last is surely not stale.
_FRESH_S = OPTIONS_S['max_age'] / 2


def run(quick: bool) -> frame.Run:
    """Rounds of a service that answers, is away, hangs and is back."""
    nova_hosts.prepare()
    rounds, phase_s = (1, 2.0) if quick else (3, 600.0 / SCALE / 3)
    test = unittest.TestCase()
    took_ms: dict[str, list[float]] = {}
    back_s: list[float] = []
    with frame.alone(), _scene(test) as scene:
        for number in range(rounds):
            for name, times, back in scene.outage(number, phase_s):
                took_ms.setdefault(name, []).extend(times)
                if back is not None:
                    back_s.append(back)
    for name, times in took_ms.items():
        yield frame.Variant(
            name,
            {
                'requests': len(times),
                'median_ms': round(statistics.median(times), 3),
                'p99_ms': round(_p99(times), 3),
                'max_ms': round(max(times), 3),
            },
        )
    before = took_ms['answers']
    away = [times for name, times in took_ms.items() if name != 'answers']
    middle = len(before) // 2
    return {
        'slowed_ms': max(statistics.median(times) for times in away)
        - statistics.median(before),
        'slowed_p99_ms': max(map(_p99, away)) - _p99(before),
        'noise_ms': abs(
            statistics.median(before[:middle])
            - statistics.median(before[middle:])
        ),
        'caught_up_intervals': max(back_s) / OPTIONS_S['refresh_interval'],
    }


def _p99(times: list[float]) -> float:
    return sorted(times)[int(0.99 * len(times))]


class _Scene:
    """The service, who stands in for it, and a scheduler."""

    def __init__(
        self,
        served: ty.Any,
        collector: endpoint.Collector,
        request: Callable[[], int],
    ) -> None:
        self._served = served
        self._agent = base.Agent(collector, 'node%05d' % 0)
        self._request = request
        self.cache: cache.Cache
        #: Where the service is when it is there.
        self.port = 0

    @contextlib.contextmanager
    def answers(self) -> Iterator[None]:
        """The service is there, at the same port each time."""
        with snapshot.http(self._served, self.port) as self.port:
            yield

    def outage(
        self, number: int, phase_s: float
    ) -> Iterator[tuple[str, list[float], float | None]]:
        """Each way of being away, with the time before it."""
        ways: tuple[
            tuple[
                str, Callable[[int], contextlib.AbstractContextManager[None]]
            ],
            ...,
        ] = (
            ('refused', lambda _: contextlib.nullcontext()),
            ('hangs', _hangs),
        )
        for turn, (name, away) in enumerate(ways):
            with self.answers():
                self._until(lambda: not self._stale())
                yield 'answers', self._requests(phase_s, HOSTS), None
            with away(self.port):
                yield name, self._requests(_FRESH_S, HOSTS), None
                if self._stale():
                    raise AssertionError('what was heard is stale too soon')
                self._until(self._stale)
                yield name + ', stale', self._requests(phase_s, HOSTS), None
                if not self._stale():
                    raise AssertionError('somebody has answered')
                wanted = 1_000 + 10 * number + turn
                snapshot.report(self._agent, wanted)
            with self.answers():
                began = time.perf_counter()
                self._until(functools.partial(self._knows, wanted))
                yield name, [], time.perf_counter() - began

    def _knows(self, admitted_mcpu: int) -> bool:
        return (
            self.cache.known()
            .hosts.by_name[self._agent.host]
            .reported.admitted_mcpu
            == admitted_mcpu
        )

    def _stale(self) -> bool:
        return self.cache.known().stale(time.monotonic(), OPTIONS_S['max_age'])

    def _until(self, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not true():
            if time.monotonic() > deadline:
                raise AssertionError('the scheduler does not catch up')
            time.sleep(0.002)

    def _requests(self, seconds: float, hosts: int) -> list[float]:
        took_ms = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(PAUSE_S)
            began = time.perf_counter()
            passed = self._request()
            took_ms.append((time.perf_counter() - began) * 1e3)
            if passed != hosts:
                raise AssertionError('%d of %d hosts pass' % (passed, hosts))
        return took_ms


@contextlib.contextmanager
def _hangs(port: int) -> Iterator[None]:
    """Takes connections and says nothing."""
    kept: list[socket.socket] = []
    with socket.create_server(('127.0.0.1', port)) as server:

        def accept() -> None:
            # Until it is shut down.
            with contextlib.suppress(OSError):
                while True:
                    kept.append(server.accept()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for one in kept:
                one.close()
            if not kept:
                raise AssertionError('nobody asked')


@contextlib.contextmanager
def _scene(test: unittest.TestCase) -> Iterator[_Scene]:
    from nova.conf import CONF
    from nova import weights

    from nova_filters import filters
    from nova_filters import process
    from nova_filters import weighers

    CONF([], project='nova', default_config_files=[])
    states = nova_hosts.states(HOSTS)
    spec = nova_hosts.request()
    # A flavor for which all hosts do, as they do by policy when it is stale.
    del spec.flavor.extra_specs['vsched:max_alloc_error_pct']
    weighed = [weights.WeighedObject(state, 0.0) for state in states]
    ours = [kind() for kind in filters.all_filters()]
    scales = [kind() for kind in weighers.all_weighers()]

    def request() -> int:
        left: list[ty.Any] = states
        for one in ours:
            left = list(one.filter_all(left, spec))
        for scale in scales:
            scale.weigh_objects(weighed, spec)
        return len(left)

    conf = database_options.configuration(databases.SQLite.make(test))
    # Nobody reports meanwhile, and that is no news.
    conf.set_override('host_down_after_s', 86_400.0, 'api')
    collector = endpoint.Collector(conf)
    served = app.create_app(conf)
    snapshot.fill(collector, HOSTS, full=False)
    scene = _Scene(served, collector, request)
    with contextlib.ExitStack() as stack:
        stack.callback(test.doCleanups)
        stack.callback(served.extensions['vsched'].database.dispose)
        stack.callback(collector.database.dispose)
        stack.enter_context(nova_hosts.logging_as_nova())
        CONF.set_override('max_age', OPTIONS_S['max_age'], 'vsched')
        stack.callback(CONF.clear_override, 'max_age', 'vsched')
        with scene.answers():
            pass
        scene.cache = stack.enter_context(
            snapshot.filter_cache(scene.port, **OPTIONS_S)
        )
        stack.enter_context(
            mock.patch.object(
                process, 'shared', autospec=True, return_value=scene.cache
            )
        )
        yield scene


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """Medians and p99 of requests, in each phase."""
    axes = figure.add_subplot()
    names = list(record.variants)
    for key, colour in (
        ('p99_ms', 'lightsteelblue'),
        ('median_ms', 'tab:blue'),
    ):
        axes.bar(
            names,
            [record.variants[name][key] for name in names],
            color=colour,
            label=key.removesuffix('_ms'),
        )
    axes.set_ylabel('ms for each request')
    axes.legend()
    figure.tight_layout()

# SPDX-License-Identifier: Apache-2.0

"""What metrics cost an agent: whole processes with them and without them."""

from collections.abc import Callable
from collections.abc import Sequence
import itertools
import math
import random
import statistics
import threading
import typing as ty

import requests

from benchmarks import agent_cost
from benchmarks import bus
from benchmarks import frame
from vsched_standalone.tests import private_services

INSTANCES = 50
#: Four times as often as a Prometheus does by default.
SCRAPE_S = 15
#: With so many pairs the bound is not the largest difference.
PAIRS = 11
SECONDS = 60
QUICK_PAIRS = 2
QUICK_SECONDS = 10
CONFIDENCE = 0.95

_TIMEOUT_S = 10


class Scraper:
    """Reads metrics again and again, until it is left.

    :param port: of the local host.
    :ivar scrapes: how many were answered.
    """

    def __init__(self, port: int) -> None:
        self.scrapes = 0
        self._url = 'http://127.0.0.1:%d/metrics' % port
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> ty.Self:
        self._thread.start()
        return self

    def __exit__(self, *_failure: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with requests.Session() as session:
            while True:
                try:
                    answer = session.get(self._url, timeout=_TIMEOUT_S)
                except requests.RequestException:
                    # It is being started, or was stopped.
                    pass
                else:
                    self.scrapes += answer.ok
                if self._over.wait(SCRAPE_S):
                    return


def upper_bound(values: Sequence[float]) -> float:
    """Return what the median is not above, with :data:`CONFIDENCE`.

    An order statistic, whatever the distribution of the values; the largest
    one if they are too few.
    """
    ordered = sorted(values)
    below = itertools.accumulate(
        math.comb(len(ordered), count) / 2 ** len(ordered)
        for count in range(len(ordered))
    )
    for value, confidence in zip(ordered, below, strict=True):
        if confidence >= CONFIDENCE:
            return value
    return ordered[-1]


def paired(
    pairs: int,
    measure: Callable[[bool], float],
    shuffle: Callable[[list[bool]], None] = random.shuffle,
) -> tuple[list[float], list[float]]:
    """Measure pairs, each in an order of its own.

    :param measure: takes whether metrics are on.
    :param shuffle: puts a list into another order.
    :returns: with metrics and without them.
    """
    found: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(pairs):
        order = [True, False]
        shuffle(order)
        for metrics in order:
            found[metrics].append(measure(metrics))
    return found[True], found[False]


def figures(on: Sequence[float], off: Sequence[float]) -> dict[str, ty.Any]:
    """Return the figures of pairs.

    :param on: percent of a CPU with metrics.
    :param off: likewise without them.
    """
    differences = [more - less for more, less in zip(on, off, strict=True)]
    return {
        'instances': INSTANCES,
        'pairs': len(differences),
        'with_metrics_core_pct': [round(one, 4) for one in on],
        'without_metrics_core_pct': [round(one, 4) for one in off],
        'core_pct': round(statistics.median(differences), 4),
        'core_pct_upper': round(upper_bound(differences), 4),
    }


def run(quick: bool) -> dict[str, ty.Any]:
    """Measure agents with metrics and without them.

    :raises frame.Unavailable: without a broker.
    """
    seconds = QUICK_SECONDS if quick else SECONDS
    with bus.collector() as (url, _), frame.alone():
        return figures(
            *paired(
                QUICK_PAIRS if quick else PAIRS,
                lambda metrics: _agent(url, seconds, metrics),
            )
        )


def _agent(url: str, seconds: float, metrics: bool) -> float:
    """Return what an agent uses, in percent of a CPU."""
    if not metrics:
        return _core_pct(agent_cost.agent(url, 'observed', INSTANCES, seconds))
    port = private_services.free_port()
    with Scraper(port) as scraper:
        found = agent_cost.agent(
            url, 'observed', INSTANCES, seconds, metrics_port=port
        )
    if scraper.scrapes < seconds // SCRAPE_S:
        raise AssertionError('%d scrapes were answered' % scraper.scrapes)
    return _core_pct(found)


def _core_pct(found: dict[str, ty.Any]) -> float:
    return float(found['with_helpers_core_pct'])

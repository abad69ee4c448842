# SPDX-License-Identifier: Apache-2.0

"""What a metric is: its name, type, text and labels.

Names follow Prometheus: base units (seconds, cores, ratios), ``_total`` for
counters, ``_info`` for metrics whose labels are the content. Each label has a
bounded set of values: hosts, instances up to ``[metrics] max_instances``, and
words of this project.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses
import enum
from importlib import metadata

import prometheus_client
from prometheus_client import core
from prometheus_client import registry as registries


class Kind(enum.StrEnum):
    """The types of metrics."""

    GAUGE = 'gauge'
    COUNTER = 'counter'
    HISTOGRAM = 'histogram'
    INFO = 'info'


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Family:
    """A metric: all series of one name.

    :param name: as it is exposed, with ``_total`` or ``_info``.
    :param text: what it measures, one or more sentences.
    :param labels: the names of its labels.
    :param buckets: the upper bounds of a histogram.
    """

    name: str
    kind: Kind
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    def samples(self) -> core.GaugeMetricFamily | core.CounterMetricFamily:
        """Return a family for a scrape, without any sample.

        :raises ValueError: for a histogram.
        """
        if self.kind is Kind.HISTOGRAM:
            raise ValueError('%s is a histogram' % self.name)
        if self.kind is Kind.COUNTER:
            return core.CounterMetricFamily(
                self.name, self.text, labels=self.labels
            )
        # An info metric is a gauge of 1 in the text format.
        return core.GaugeMetricFamily(self.name, self.text, labels=self.labels)

    def counter(
        self, registry: registries.CollectorRegistry
    ) -> prometheus_client.Counter:
        """Return a counter of this process."""
        return prometheus_client.Counter(
            self.name, self.text, self.labels, registry=registry
        )

    def gauge(
        self, registry: registries.CollectorRegistry
    ) -> prometheus_client.Gauge:
        """Return a gauge of this process."""
        return prometheus_client.Gauge(
            self.name, self.text, self.labels, registry=registry
        )

    def histogram(
        self, registry: registries.CollectorRegistry
    ) -> prometheus_client.Histogram:
        """Return a histogram of this process."""
        return prometheus_client.Histogram(
            self.name,
            self.text,
            self.labels,
            registry=registry,
            buckets=self.buckets,
        )


def gauge(name: str, text: str, *labels: str) -> Family:
    """Declare a gauge."""
    return Family(name, Kind.GAUGE, text, labels)


def counter(name: str, text: str, *labels: str) -> Family:
    """Declare a counter."""
    return Family(name, Kind.COUNTER, text, labels)


#: Durations of requests and of transactions, in seconds.
DURATIONS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def version() -> str:
    """Return the version of this project."""
    try:
        return metadata.version('vsched')
    except metadata.PackageNotFoundError:
        # Run from a source tree that is not installed.
        return 'unknown'


class Exposed(registries.Collector):
    """The metrics of a registry without the times of their creation.

    These would double the number of series, and are no metrics of ours.
    """

    def __init__(self, registry: registries.CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics."""
        return without_created(self._registry.collect())


def without_created(metrics: Iterable[core.Metric]) -> Iterator[core.Metric]:
    """Yield metrics without the samples that prometheus_client adds."""
    for metric in metrics:
        metric.samples = [
            one for one in metric.samples if not one.name.endswith('_created')
        ]
        yield metric

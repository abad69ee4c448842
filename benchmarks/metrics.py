# SPDX-License-Identifier: Apache-2.0

"""What metrics cost: series, bytes and time, and whether any is missing."""

import statistics
import time
import typing as ty

from oslo_config import cfg
from prometheus_client import parser

from benchmarks import frame
from benchmarks import metrics_agent
from benchmarks import metrics_fleet
from benchmarks import stored_fleet
from vsched_api import app
from vsched_api.db import session
from vsched_api.tests import database_options
from vsched_standalone.tests import monitored_services
from vsched_standalone.tests import private_services

ABOUT = frame.About(
    'What metrics cost',
    'A database holds 1 000 hosts with five instances each, all with a '
    'reservation, their sums of usage of the last half hour by minute, and '
    'events. ``GET /metrics`` is answered from it, in one process and again '
    'and again; the time is that in the service, its queries included. The '
    'database is a server of its own on the same machine, as the collector '
    'keeps it.\n\n'
    '*Series per instance* is the difference to an answer with ``[metrics] '
    'per_instance = false``, divided by the number of instances.\n\n'
    'Then a Prometheus scrapes a REST service, a collector and the metrics of '
    'an agent for three minutes, with the files of ``etc/vsched`` but every '
    '%d seconds, while a host reports. Every expression of dashboards and '
    'alerts is evaluated every 15 seconds from half a minute on, those of '
    'alerts without their comparison with a number. *Empty* are those that '
    'gave nothing at least once.\n\n'
    'The cost of the metrics of an agent is the difference between two agents '
    'with 50 simulated VMs of four vCPUs, as in *agent_cost*: one without '
    'metrics, and one with them that is scraped every 15 seconds. Each is a '
    'whole process with its helpers; the scraper and the collector are '
    'others. They run in pairs, in an order that is drawn for each pair, and '
    'the median of the differences counts. *Upper* is what the median of all '
    'such pairs is not above, with a confidence of 95 %%, whatever '
    'their distribution.' % monitored_services.SCRAPE_S,
    (),
    {
        'series_per_instance': 'series for each instance with a reservation',
        'series': 'series of 1 000 hosts with 5 000 instances',
        'scrape_s': 'seconds to answer with these, the median on the slower '
        'database',
        'scrape_kb': 'kilobytes of the answer',
        'empty_expressions': 'expressions that gave nothing at least once',
        'agent_core_pct': 'cost of the metrics of an agent with 50 instances, '
        'percent of a CPU; the median of the pairs',
        'agent_core_pct_upper': 'upper bound of that, with a confidence of '
        '95 percent',
    },
    targets=(
        frame.at_most('scrape_s', 10, 's', "Prometheus' scrape_timeout"),
        frame.at_most('empty_expressions', 0, '', 'issue 20'),
        frame.at_most('agent_core_pct', 0.1, '%', 'issue 20'),
        frame.at_most(
            'agent_core_pct_upper',
            0.1,
            '%',
            'our own: that of issue 20, for the bound',
        ),
    ),
    exercises=(
        'doc/source/admin/monitoring.rst',
        'etc/vsched/grafana',
        'etc/vsched/prometheus',
    ),
)

SCRAPED_S = 180
#: From when on, and how often, expressions must give something, in seconds.
WARM_S = 30
STEP_S = 15


def run(quick: bool) -> frame.Run:
    """One database after the other, then Prometheus."""
    hosts = stored_fleet.HOSTS // (10 if quick else 1)
    found = {}
    for kind in stored_fleet.SERVERS:
        found[kind.name] = _measure(kind, hosts, 3 if quick else 20)
        yield frame.Variant(kind.name, found[kind.name])
    scraped = _prometheus(WARM_S + STEP_S if quick else SCRAPED_S)
    yield frame.Variant('prometheus', scraped)
    agent = metrics_agent.run(quick)
    yield frame.Variant('agent', agent)
    one = found[stored_fleet.SERVERS[0].name]
    return {
        'series_per_instance': one['series_per_instance'],
        'series': one['series'],
        'scrape_s': max(each['scrape_s'] for each in found.values()),
        'scrape_kb': one['scrape_kb'],
        'empty_expressions': len(scraped['empty']),
        'agent_core_pct': agent['core_pct'],
        'agent_core_pct_upper': agent['core_pct_upper'],
    }


def _measure(kind: ty.Any, hosts: int, repeats: int) -> dict[str, ty.Any]:
    with stored_fleet.database(kind) as url:
        return _serve(database_options.configuration(url), hosts, repeats)


def _serve(
    conf: cfg.ConfigOpts, hosts: int, repeats: int
) -> dict[str, ty.Any]:
    now = time.time()
    database = session.Database(conf, session.Purpose.MAINTENANCE)
    served = app.create_app(conf, now=lambda: now)
    try:
        metrics_fleet.fill(database, hosts, now)
        client = served.test_client()
        _get(client)
        took_s = []
        for _ in range(repeats):
            answer, each_s = _get(client)
            took_s.append(each_s)
        conf.set_override('per_instance', False, 'metrics')
        without, without_s = _get(client)
    finally:
        served.extensions['vsched'].database.dispose()
        database.dispose()
    series = _series(answer.text)
    instances = hosts * metrics_fleet.INSTANCES
    omitted = _value(answer.text, 'vsched_metrics_instances_omitted')
    if omitted:
        raise AssertionError('%d instances are left out' % omitted)
    return {
        'hosts': hosts,
        'instances': instances,
        'series': series,
        'series_per_instance': (series - _series(without.text)) / instances,
        'scrape_s': round(statistics.median(took_s), 3),
        'scrape_s_max': round(max(took_s), 3),
        'scrape_without_instances_s': round(without_s, 3),
        'scrape_kb': round(len(answer.data) / 1000, 1),
    }


def _get(client: ty.Any) -> tuple[ty.Any, float]:
    began = time.perf_counter()
    with client.get('/metrics') as answer:
        data = answer.data
        took_s = time.perf_counter() - began
    if answer.status_code != 200:
        raise AssertionError(data)
    return answer, took_s


def _series(text: str) -> int:
    return sum(
        bool(line) and not line.startswith('#') for line in text.splitlines()
    )


def _value(text: str, name: str) -> float:
    (value,) = (
        sample.value
        for metric in parser.text_string_to_metric_families(text)
        for sample in metric.samples
        if sample.name == name
    )
    return float(value)


def _prometheus(seconds: int) -> dict[str, ty.Any]:
    for name in ('prometheus', 'promtool'):
        if private_services.Prometheus.program(name) is None:
            raise frame.Unavailable('%s is not in PATH' % name)
    with monitored_services.MonitoredServices() as services:
        services.seed()
        with private_services.Prometheus(services.files()) as prometheus:
            began = time.time()
            time.sleep(seconds)
            expressions = list(services.expressions())
            empty = [
                '%s: %s' % one
                for one in expressions
                if not _always(
                    prometheus, one[1], began + WARM_S, began + seconds
                )
            ]
            (scraped,) = prometheus.ask(
                'query', query='count({job=~"vsched-.*"})'
            )['result']
    return {
        'seconds': seconds,
        'expressions': len(expressions),
        'empty': empty,
        'series': int(scraped['value'][1]),
    }


def _always(
    prometheus: private_services.Prometheus,
    expression: str,
    start: float,
    end: float,
) -> bool:
    """Return whether an expression gave a number at each step."""
    steps = {
        moment
        for series in prometheus.ask(
            'query_range',
            query=expression,
            start='%.3f' % start,
            end='%.3f' % end,
            step=str(STEP_S),
        )['result']
        for moment, value in series['values']
        if value != 'NaN'
    }
    return len(steps) == int((end - start) // STEP_S) + 1

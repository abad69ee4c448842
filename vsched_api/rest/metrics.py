# SPDX-License-Identifier: Apache-2.0

"""``/metrics``: figures of all hosts in the form of Prometheus."""

from collections.abc import Iterable

import flask
import prometheus_client
from prometheus_client import core
from prometheus_client import registry

from vsched_api.operations import metrics
from vsched_api.policies import metrics as policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import fields

BLUEPRINT = flask.Blueprint('metrics', __name__)


@BLUEPRINT.get('/metrics')
@documentation.operation(
    policies.SHOW, None, media={'text/plain': {'type': 'string'}}
)
def show() -> flask.Response:
    """Read the figures of all hosts, in the text form of Prometheus."""
    authorization.enforce(policies.SHOW)
    validation.query(fields.NOTHING)
    own = services.current()
    figures = registry.CollectorRegistry(auto_describe=False)
    figures.register(
        _Figures(
            metrics.read(
                own.database, own.now(), own.conf.api.host_down_after_s
            )
        )
    )
    return flask.Response(
        prometheus_client.generate_latest(figures),
        content_type=prometheus_client.CONTENT_TYPE_LATEST,
    )


class _Figures(registry.Collector):
    def __init__(self, found: metrics.Metrics) -> None:
        self._found = found

    def collect(self) -> Iterable[core.Metric]:
        """Every figure of every host."""
        per_host = {
            name: core.GaugeMetricFamily(
                'vsched_host_' + name, text, labels=['host']
            )
            for name, text in (
                ('up', 'Whether the agent reports.'),
                ('last_batch', 'Number of the last batch stored.'),
                (
                    'last_report_timestamp_seconds',
                    'When the last batch was stored.',
                ),
                ('instances', 'Instances the host lists.'),
                ('capacity_mcpu', 'What reservations may use in total.'),
                ('admitted_mcpu', 'What applied reservations use.'),
                (
                    'contradictions',
                    'Codes by which Nova and placement contradict it.',
                ),
            )
        }
        for host in self._found.hosts:
            figures = {
                'up': int(host.up),
                'last_batch': host.last_batch,
                'last_report_timestamp_seconds': host.last_report_at,
                'instances': host.instances,
                'capacity_mcpu': host.capacity_mcpu,
                'admitted_mcpu': host.admitted_mcpu,
                'contradictions': host.contradictions,
            }
            for name, value in figures.items():
                if value is not None:
                    per_host[name].add_metric([host.name], value)
        yield from per_host.values()
        states = core.GaugeMetricFamily(
            'vsched_reservations',
            'Reservations in each state.',
            labels=['host', 'state'],
        )
        for host_name, state, count in self._found.reservations:
            states.add_metric([host_name, state], count)
        yield states

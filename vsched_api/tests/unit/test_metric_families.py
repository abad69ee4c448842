# SPDX-License-Identifier: Apache-2.0

"""Names, units and texts of metrics follow Prometheus."""

import re

from oslotest import base
from prometheus_client import registry as registries

from vsched_api.metric_families import api
from vsched_api.metric_families import catalogue
from vsched_api.metric_families import collector
from vsched_api.metric_families import fleet
from vsched_lib.metrics import agent
from vsched_lib.metrics import family

#: The labels that there are, each with a bounded set of values.
LABELS = {
    'agent_version',
    'cause',
    'code',
    'flavor_name',
    'host',
    'hypervisor',
    'instance_uuid',
    'kernel',
    'kind',
    'method',
    'name',
    'project_id',
    'route',
    'server_name',
    'state',
    'status',
    'step',
    'subject',
    'task',
    'use',
    'version',
}
# The units of this project, which are no base units.
_OTHER_UNITS = re.compile(r'_(us|ms|ns|mcpu|ppm|pct|percent|minutes|hours)_?$')


class TestFamilies(base.BaseTestCase):
    def test_each_is_listed_once(self):
        names = [one.name for one in catalogue.ALL]
        self.assertEqual(len(names), len(set(names)))
        declared = {
            one
            for module in (agent, api, collector, fleet)
            for one in vars(module).values()
            if isinstance(one, family.Family)
        }
        self.assertEqual(declared, set(catalogue.ALL))

    def test_names(self):
        for one in catalogue.ALL:
            self.assertRegex(one.name, r'^vsched(_[a-z]+)+$')
            self.assertIsNone(_OTHER_UNITS.search(one.name), one.name)
            self.assertEqual(
                one.kind is family.Kind.COUNTER,
                one.name.endswith('_total'),
                one.name,
            )
            self.assertEqual(
                one.kind is family.Kind.INFO,
                one.name.endswith('_info'),
                one.name,
            )

    def test_texts(self):
        for one in catalogue.ALL:
            self.assertRegex(one.text, r'^[A-Z0-9(].*\.$', one.name)
            self.assertNotIn('\n', one.text)

    def test_labels(self):
        self.assertEqual(
            LABELS, {label for one in catalogue.ALL for label in one.labels}
        )

    def test_buckets(self):
        for one in catalogue.ALL:
            self.assertEqual(
                one.kind is family.Kind.HISTOGRAM, bool(one.buckets)
            )
            self.assertEqual(sorted(one.buckets), list(one.buckets))

    def test_a_histogram_is_no_set_of_samples(self):
        self.assertRaises(ValueError, api.DURATION.samples)

    def test_times_of_creation_are_left_out(self):
        registry = registries.CollectorRegistry()
        collector.BATCHES_STORED.counter(registry).inc()
        self.assertIn(
            'vsched_collector_batches_stored_created',
            {
                sample.name
                for metric in registry.collect()
                for sample in metric.samples
            },
        )
        self.assertEqual(
            {'vsched_collector_batches_stored_total': 1.0},
            {
                sample.name: sample.value
                for metric in family.Exposed(registry).collect()
                for sample in metric.samples
            },
        )

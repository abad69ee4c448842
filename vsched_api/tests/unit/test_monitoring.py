# SPDX-License-Identifier: Apache-2.0

"""Alerts and dashboards use metrics that exist, and every alert a runbook."""

import re

from oslotest import base

from vsched_api.metric_families import catalogue
from vsched_api.tests import monitoring
from vsched_lib.metrics import family


def exposed():
    """Return the labels of every name that is exposed."""
    found = {}
    for one in catalogue.ALL:
        if one.kind is family.Kind.HISTOGRAM:
            for end in ('_sum', '_count'):
                found[one.name + end] = set(one.labels)
            found[one.name + '_bucket'] = {*one.labels, 'le'}
        else:
            found[one.name] = set(one.labels)
    # An agent knows no label of its host: Prometheus adds that of its target.
    for name, labels in found.items():
        if name.startswith('vsched_agent_'):
            labels.add('instance')
    return found


class MonitoringCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        if not monitoring.PROMETHEUS.is_dir():
            self.skipTest('only the source tree has the files')
        self.exposed = exposed()

    def check(self, expression):
        found = monitoring.metrics(expression)
        for name, labels in found.items():
            self.assertIn(name, self.exposed, expression)
            self.assertLessEqual(labels, self.exposed[name], expression)
        return found


class TestAlerts(MonitoringCase):
    def test_expressions(self):
        for name, alert in monitoring.alerts().items():
            if not self.check(alert['expr']):
                self.assertIn('up{', alert['expr'], name)

    def test_what_is_compared(self):
        for expression, expected in (
            ('up{a="b"} == 0', 'up{a="b"}'),
            ('a < -0.05 and on (h) b > 0.05', 'a and on (h) b'),
            ('a > (b or a * 0)', 'a > (b or a * 0)'),
        ):
            self.assertEqual(expected, monitoring.compared(expression))
        for alert in monitoring.alerts().values():
            self.assertNotRegex(
                monitoring.compared(alert['expr']), r'[<>=] -?[0-9.]+$'
            )

    def test_runbooks(self):
        page = monitoring.PAGE.read_text(encoding='utf-8')
        titles = re.findall(r'^(Vsched\w+)\n-+$', page, re.MULTILINE)
        alerts = monitoring.alerts()
        self.assertEqual(sorted(alerts), sorted(titles))
        for name, alert in alerts.items():
            # As Sphinx makes it from the title.
            self.assertTrue(
                alert['annotations']['runbook_url'].endswith(
                    '/admin/monitoring.html#' + name.lower()
                ),
                name,
            )

    def test_each_has_a_severity_and_a_summary(self):
        for name, alert in monitoring.alerts().items():
            self.assertIn(
                alert['labels']['severity'], ('info', 'warning', 'critical')
            )
            self.assertTrue(alert['annotations']['summary'], name)

    def test_each_is_tested_to_fire_and_not_to_fire(self):
        tested = {name: set() for name in monitoring.alerts()}
        for test in monitoring.load('rules-test.yaml')['tests']:
            for one in test['alert_rule_test']:
                tested[one['alertname']].add(bool(one['exp_alerts']))
        self.assertEqual(
            {name: {True, False} for name in monitoring.alerts()}, tested
        )

    def test_jobs_have_the_names_that_alerts_use(self):
        jobs = [
            one['job_name']
            for one in monitoring.load('prometheus.yaml')['scrape_configs']
        ]
        self.assertEqual(['vsched-api', 'vsched-collector'], jobs)
        (pattern,) = re.findall(
            r'job=~"(.*)"', monitoring.alerts()['VschedTargetDown']['expr']
        )
        for job in jobs:
            self.assertRegex(job, '^(%s)$' % pattern)


class TestDashboards(MonitoringCase):
    def test_expressions(self):
        found = monitoring.dashboards()
        self.assertEqual(
            ['agent.json', 'fleet.json', 'host.json', 'instance.json'],
            [*found],
        )
        for dashboard in found.values():
            count = 0
            for _, expression in monitoring.expressions(dashboard):
                self.assertTrue(self.check(expression), expression)
                count += 1
            self.assertLess(10, count)

    def test_every_metric_is_used_somewhere(self):
        used = {
            name
            for dashboard in monitoring.dashboards().values()
            for _, expression in monitoring.expressions(dashboard)
            for name in monitoring.metrics(expression)
        } | {
            name
            for alert in monitoring.alerts().values()
            for name in monitoring.metrics(alert['expr'])
        }
        unused = {
            one.name
            for one in catalogue.ALL
            if one.kind is not family.Kind.HISTOGRAM and one.name not in used
        }
        self.assertEqual(
            {
                # For queries by hand.
                'vsched_api_info',
                'vsched_collector_events_total',
                'vsched_collector_info',
                'vsched_collector_requests_unsigned_total',
                'vsched_collector_rows_deleted_total',
                'vsched_collector_samples_stored_total',
            },
            unused,
        )

    def test_agents_have_a_dashboard_of_their_own(self):
        """The others work without an agent's port, which is off by default."""
        for name, dashboard in monitoring.dashboards().items():
            for _, expression in monitoring.expressions(dashboard):
                for metric in monitoring.metrics(expression):
                    self.assertEqual(
                        name == 'agent.json',
                        metric.startswith('vsched_agent_'),
                        expression,
                    )

    def test_variables(self):
        for dashboard in monitoring.dashboards().values():
            declared = {
                one['name']: one.get('definition', '')
                for one in dashboard['templating']['list']
            }
            used = {'datasource'}
            for expression in (
                *declared.values(),
                *(one for _, one in monitoring.expressions(dashboard)),
            ):
                self.assertLessEqual(
                    monitoring.variables(expression), declared.keys()
                )
                used |= monitoring.variables(expression)
            self.assertEqual(used, declared.keys())
            for definition in declared.values():
                if definition:
                    self.check(definition)

    def test_panels(self):
        uids = set()
        for dashboard in monitoring.dashboards().values():
            uids.add(dashboard['uid'])
            places = set()
            for panel in dashboard['panels']:
                self.assertTrue(panel['title'])
                self.assertTrue(panel['fieldConfig']['defaults']['unit'])
                place = panel['gridPos']
                self.assertLessEqual(place['x'] + place['w'], 24)
                cells = {
                    (x, y)
                    for x in range(place['x'], place['x'] + place['w'])
                    for y in range(place['y'], place['y'] + place['h'])
                }
                self.assertFalse(places & cells, panel['title'])
                places |= cells
            ids = [panel['id'] for panel in dashboard['panels']]
            self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(len(monitoring.dashboards()), len(uids))

# SPDX-License-Identifier: Apache-2.0

from matplotlib import figure as figures
from oslotest import base

from benchmarks import frame
from benchmarks import lab
from benchmarks.tests import runs
from benchmarks import xen
from benchmarks import xen_inside


def shares(**other):
    """What is found on a host that gives all that was promised."""
    found = {}
    for vcpus, promised_pct in xen_inside.PROMISED_PCT.items():
        for pct in promised_pct:
            found[xen_inside.key(vcpus, pct)] = float(pct)
            found[xen_inside.key(vcpus, pct) + '_sd'] = 0.1
    return {**found, 'cpus': 2, **other}


class TestXen(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.asked = []

        def inside(scheduler, what, number, steady):
            self.asked.append((scheduler, what, steady))
            if what == 'balloon':
                return {'pv_s': 1.0, 'pvh_s': 3.0}
            if scheduler == 'credit2':
                return shares()
            # More and less than was promised are errors alike.
            least, most = xen_inside.key(1, 10), xen_inside.key(4, 30)
            return shares(**{least: 9.5, most: 30.3})

        self.patch(xen, '_inside', inside)
        self.patch(
            lab,
            'lane',
            lambda option: {'passed': 9.0, 'failed': 1.0, 'seconds': 600.0},
        )
        self.patch(frame.os, 'environ', {'VSCHED_HOST_HELD': '1'})

    def test_every_metric_is_described(self):
        _, metrics = runs.finish(xen.run(True))
        self.assertEqual(set(xen.ABOUT.units), set(metrics))
        self.assertEqual(
            {one.metric for one in xen.ABOUT.targets} - set(metrics), set()
        )
        self.assertEqual(
            [
                ('rtds', 'shares', True),
                ('credit2', 'shares', True),
                ('rtds', 'balloon', False),
            ],
            self.asked,
        )

    def test_metrics(self):
        _, metrics = runs.finish(xen.run(True))
        self.assertAlmostEqual(5.0, metrics['rtds_error_pct'])
        self.assertEqual(
            (0.0, 3.0, 10.0, 0.9),
            (
                metrics['credit2_error_pct'],
                metrics['balloon_s'],
                metrics['lane_minutes'],
                metrics['suites_passed'],
            ),
        )

    def test_a_picture(self):
        class Record:
            variants = {'rtds': shares(), 'credit2': shares()}

        figure = figures.Figure()
        xen.draw(Record(), figure)
        self.assertEqual(2, len(figure.axes))

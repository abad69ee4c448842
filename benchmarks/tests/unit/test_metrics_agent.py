# SPDX-License-Identifier: Apache-2.0

"""Pairs of agents with metrics and without, and what is made of them."""

import threading
from unittest import mock

from oslotest import base
import requests

from benchmarks import agent_cost
from benchmarks import metrics_agent
from vsched_agent.metrics import recorder
from vsched_lib.metrics import server
from vsched_standalone.tests import private_services


class PairsTestCase(base.BaseTestCase):
    def test_each_pair_has_an_order_of_its_own(self):
        orders = [[True, False], [False, True], [False, True]]
        measured = []

        def shuffle(order):
            order[:] = orders[len(measured) // 2]

        def measure(metrics):
            measured.append(metrics)
            return len(measured)

        on, off = metrics_agent.paired(3, measure, shuffle)
        self.assertEqual([*orders[0], *orders[1], *orders[2]], measured)
        self.assertEqual([1, 4, 6], on)
        self.assertEqual([2, 3, 5], off)

    def test_the_median_of_the_differences(self):
        found = metrics_agent.figures([1.5, 2.25, 9.0], [1.0, 2.0, 3.0])
        self.assertEqual(0.5, found['core_pct'])
        self.assertEqual(6.0, found['core_pct_upper'])
        self.assertEqual(3, found['pairs'])
        self.assertEqual([1.5, 2.25, 9.0], found['with_metrics_core_pct'])

    def test_the_bound_of_a_median(self):
        # By the binomial distribution: 9 of 11 values, 15 of 20.
        self.assertEqual(9, metrics_agent.upper_bound(range(1, 12)))
        self.assertEqual(15, metrics_agent.upper_bound(range(20, 0, -1)))
        # So few say nothing, but that it is not above the largest.
        self.assertEqual(4, metrics_agent.upper_bound([4, 1, 2, 3]))

    def test_a_full_run_leaves_the_largest_difference_out(self):
        values = range(metrics_agent.PAIRS)
        self.assertLess(metrics_agent.upper_bound(values), max(values))


class AgentTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        patcher = mock.patch.object(agent_cost, 'agent', autospec=True)
        self.agent = patcher.start()
        self.addCleanup(patcher.stop)
        self.agent.return_value = {'with_helpers_core_pct': 0.5}
        self.patch(metrics_agent, 'SCRAPE_S', 0.05)

    def test_without_metrics_there_is_no_port(self):
        self.assertEqual(0.5, metrics_agent._agent('fake://', 20, False))
        self.agent.assert_called_once_with('fake://', 'observed', 50, 20)

    def test_with_metrics_it_is_scraped(self):
        answered = threading.Event()

        def serve(url, kind, vms, seconds, metrics_port):
            served = server.Server(
                server.Settings('agent', '127.0.0.1', metrics_port),
                recorder.Recorder(lambda: 1).exposed(),
            )
            served.start()
            answered.wait(60)
            served.stop()
            return {'with_helpers_core_pct': 0.75}

        get = requests.Session.get

        def watched(*arguments, **options):
            answer = get(*arguments, **options)
            answered.set()
            return answer

        self.agent.side_effect = serve
        self.patch(requests.Session, 'get', watched)
        self.assertEqual(0.75, metrics_agent._agent('fake://', 0.05, True))

    def test_metrics_that_nobody_could_read(self):
        self.assertRaisesRegex(
            AssertionError,
            '0 scrapes',
            metrics_agent._agent,
            'fake://',
            1,
            True,
        )

    def test_a_scraper_ends_while_nothing_answers(self):
        with metrics_agent.Scraper(private_services.free_port()) as scraper:
            pass
        self.assertEqual(0, scraper.scrapes)

# SPDX-License-Identifier: Apache-2.0

"""The fleet whose usage is summed up, and what is taken for an answer."""

from unittest import mock

from benchmarks import usage_top
from vsched_api.operations import usage_totals
from vsched_api.tests import base

HOSTS, INSTANCES = 3, 4


class FleetTestCase(base.TestCase):
    def served(self):
        return usage_top.served(
            self.conf.database.connection, HOSTS, INSTANCES
        )

    def test_each_instance_of_each_page_is_summed_up(self):
        with (
            mock.patch.object(usage_totals, 'MAX_HOSTS', 2),
            self.served() as root,
        ):
            found = usage_top.ask(root)
        self.assertEqual(HOSTS * INSTANCES, found.instances)
        self.assertEqual(2, len(found.took_s))
        self.assertLess(0, found.size_kb)

    def test_a_window_that_is_cut(self):
        with (
            mock.patch.object(
                usage_totals, 'MAX_SAMPLES', HOSTS * INSTANCES * 5
            ),
            self.served() as root,
        ):
            self.assertRaisesRegex(
                AssertionError, 'is cut', usage_top.ask, root
            )


class MeasureTestCase(base.TestCase):
    def setUp(self):
        super().setUp()
        self.command = self.patch_of('_command', return_value=12)
        self.ask = self.patch_of('ask')
        self.ask.return_value = usage_top.Answers([0.25, 0.5], 90.04, 12)

    def patch_of(self, name, **options):
        patcher = mock.patch.object(usage_top, name, autospec=True, **options)
        self.addCleanup(patcher.stop)
        return patcher.start()

    def measure(self):
        return usage_top.measure('http://api', HOSTS, INSTANCES, 2, {})

    def test_the_first_of_each_does_not_count(self):
        self.ask.side_effect = [
            usage_top.Answers([9.0, 9.0], 90.0, 12),
            usage_top.Answers([0.25, 0.5], 90.04, 12),
            usage_top.Answers([0.25, 1.0], 90.04, 12),
        ]
        found = self.measure()
        self.assertEqual(3, self.command.call_count)
        self.assertEqual(2, found['requests'])
        self.assertEqual(1.0, found['answers_s'])
        self.assertEqual(1.0, found['request_s'])
        self.assertEqual(90.0, found['answers_kb'])

    def test_an_instance_that_is_missing(self):
        self.ask.return_value = usage_top.Answers([0.25], 90.0, 11)
        self.assertRaisesRegex(AssertionError, '11 of 12', self.measure)

    def test_a_list_that_is_too_short(self):
        self.command.return_value = 11
        self.assertRaisesRegex(AssertionError, '11 instances', self.measure)

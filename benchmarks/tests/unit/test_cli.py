# SPDX-License-Identifier: Apache-2.0

"""Pairs of runs, and the order in which they are made."""

from unittest import mock

from oslotest import base

from benchmarks import cli


class PairsTestCase(base.BaseTestCase):
    def test_the_median_of_the_differences(self):
        found = cli.added(
            [
                (cli.Times(1.1, 1.0), cli.Times(1.0, 0.9)),
                (cli.Times(9.0, 1.0), cli.Times(1.0, 0.8)),
                (cli.Times(2.1, 1.0), cli.Times(2.0, 0.0)),
            ]
        )
        self.assertAlmostEqual(0.1, found.wall_s)
        self.assertAlmostEqual(0.2, found.cpu_s)

    def test_each_of_the_two_comes_first_in_turn(self):
        times = {'installed': 3.0, 'bare': 1.0}
        with mock.patch.object(
            cli, '_help', autospec=True, side_effect=times.__getitem__
        ) as timed:
            pairs = cli._pairs(3, 'installed', 'bare')
        self.assertEqual([(3.0, 1.0)] * 3, pairs)
        self.assertEqual(
            ['installed', 'bare'] * 3
            + ['bare', 'installed'] * 1
            + ['installed', 'bare'],
            [one.args[0] for one in timed.call_args_list],
        )

    def test_all_commands_are_the_target(self):
        (target,) = (
            one for one in cli.ABOUT.targets if one.metric == 'commands'
        )
        self.assertEqual(29, target.bound)

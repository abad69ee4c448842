# SPDX-License-Identifier: Apache-2.0

"""Lists of CPUs."""

import os
import pathlib

import ddt
import fixtures
import hypothesis
from hypothesis import strategies
from oslotest import base as test_base

from vsched_agent.host import cpu_list


@ddt.ddt
class ParseTest(test_base.BaseTestCase):
    @ddt.data(
        ('', set()),
        ('0', {0}),
        ('0-3', {0, 1, 2, 3}),
        ('0-3,^2,8\n', {0, 1, 3, 8}),
        (' 1 , 2 ', {1, 2}),
        ('0-7,^0-3', {4, 5, 6, 7}),
    )
    @ddt.unpack
    def test_good(self, text, expected):
        self.assertEqual(frozenset(expected), cpu_list.parse(text))

    @ddt.data(
        'a', '1-', '-1', '3-1', '0-9999999999', '1;2', '٣', '1-2-3', '^', '0x1'
    )
    def test_bad(self, text):
        self.assertRaises(ValueError, cpu_list.parse, text)

    @hypothesis.given(
        strategies.frozensets(
            strategies.integers(0, cpu_list.MAX_CPU), max_size=50
        )
    )
    def test_render_is_the_inverse(self, cpus):
        self.assertEqual(cpus, cpu_list.parse(cpu_list.render(cpus)))

    def test_render_joins_ranges(self):
        self.assertEqual('0-2,5', cpu_list.render(frozenset({0, 1, 2, 5})))


class OnlineTest(test_base.BaseTestCase):
    def test_this_host(self):
        self.assertIn(len(cpu_list.online()), range(1, cpu_list.MAX_CPU))

    def test_another_root(self):
        root = self.useFixture(fixtures.TempDir()).path
        path = pathlib.Path(root, 'sys/devices/system/cpu/online')
        path.parent.mkdir(parents=True)
        path.write_text('0-1,3\n')
        self.assertEqual({0, 1, 3}, cpu_list.online(root))

    def test_without_sysfs(self):
        self.assertEqual(
            set(range(os.cpu_count())), cpu_list.online('/nowhere')
        )

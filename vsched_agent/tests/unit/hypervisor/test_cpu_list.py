# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Lists of CPUs."""

import pathlib

import ddt
import hypothesis
from hypothesis import strategies
from oslotest import base as test_base

from vsched_agent.hypervisor import cpu_list


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

    @ddt.data('a', '1-', '-1', '3-1', '0-9999999999', '1;2', '٣', '1-2-3',
              '^', '0x1')
    def test_bad(self, text):
        self.assertRaises(ValueError, cpu_list.parse, text)

    @hypothesis.given(strategies.frozensets(
        strategies.integers(0, cpu_list.MAX_CPU), max_size=50))
    def test_render_is_the_inverse(self, cpus):
        self.assertEqual(cpus, cpu_list.parse(cpu_list.render(cpus)))

    def test_render_joins_ranges(self):
        self.assertEqual('0-2,5', cpu_list.render(frozenset({0, 1, 2, 5})))


class OnlineTest(test_base.BaseTestCase):

    def test_this_host(self):
        self.assertIn(len(cpu_list.online()), range(1, cpu_list.MAX_CPU))

    def test_without_sysfs(self):
        self.assertRaises(
            OSError, cpu_list.online, pathlib.Path('/nowhere'))

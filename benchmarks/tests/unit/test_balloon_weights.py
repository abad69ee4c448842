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

from oslotest import base

from benchmarks import balloon_weights


class DividedTest(base.BaseTestCase):

    def test_the_ratio_is_that_of_means(self):
        divided = balloon_weights.Divided(
            (1.333, 0.667), (1, 1), ((0.9, 0.4), (0.7, 0.4)), (0.0, 0.0))
        self.assertAlmostEqual(2.0, divided.ratio)
        figures = divided.figures()
        self.assertEqual([0.9, 0.7], figures['heavy_cpus'])
        self.assertEqual([0.4, 0.4], figures['light_cpus'])

    def test_what_is_promised_is_in_the_weights_proportion(self):
        heavy, light = balloon_weights.WEIGHTS
        self.assertEqual(2, heavy / light)
        heavy_us, light_us = balloon_weights.RUNTIMES_US
        self.assertEqual(2, heavy_us / light_us)

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

from benchmarks import balloon


def took(seconds, **fields):
    return [balloon.Took(one, 1.0, **fields) for one in seconds]


class MetricsTest(base.BaseTestCase):

    def test_gains_and_losses(self):
        found = {}
        for kind, ours_s in (('locks', 4.0), ('pipeline', 6.0),
                             ('memory', 10.0), ('spin', 10.5)):
            found[kind, 'default'] = took([9.0, 11.0])
            found[kind, 'ours'] = took(
                [ours_s], trigger_s=4.0, offline_s=(0.2, 0.4))
            found[kind, 'pinned'] = took([10.0])
        self.assertEqual({
            'mean_time_cut_pct': 50.0, 'loser_loss_pct': 5.0,
            'worst_loss_pct': 5.0, 'offline_4to1_s': 0.3,
            'trigger_s': 4.0}, balloon._metrics(found))

    def test_what_a_guest_tells(self):
        line = b'{"work": "spin", "seconds": 1.500}'
        self.assertFalse(balloon._told(b'noise\r\n'))
        # Half of a line is none.
        self.assertFalse(balloon._told(line))
        self.assertTrue(balloon._told(b'noise\r\n' + line + b'\r\n'))

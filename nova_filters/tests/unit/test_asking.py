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

"""What a flavor asks of hosts."""

from oslotest import base

from nova_filters import asking
from vsched_lib.model import fit
from vsched_lib.model import reservation


class TestQuestion(base.BaseTestCase):
    """What becomes of extra specs."""

    def test_none_of_our_business(self):
        for specs in (None, {}, {'hw:cpu_policy': 'shared'}):
            self.assertIsNone(asking.question(specs, 2))

    def test_the_same_flavor_is_the_same_question(self):
        specs = {'vsched:cpu_runtime_us': '5000'}
        found = asking.question(specs, 2)
        self.assertEqual(fit.Ask(
            2, reservation.Reservation(5_000, 20_000)), found.ask)
        self.assertIs(found, asking.question(
            {'hw:mem_page_size': 'large', **specs}, 2))
        self.assertIsNot(found, asking.question(specs, 3))

    def test_what_nova_does_not_see(self):
        for specs, words in (
                ({'vsched:cpu_runtime_us': '5000',
                  'vsched:cpu_period_us': '1000'}, 'more than the period'),
                ({'vsched:cpu_period_us': '1000'}, 'no meaning without'),
                ({'vsched:cpu_runtime_us': 'five'}, 'not accepted'),
                ({'vsched:cpu': '1'}, 'is not known')):
            for _ in range(2):
                problem = self.assertRaises(
                    asking.Nonsense, asking.question, specs, 1)
                self.assertIn(words, str(problem))

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
import types

from oslotest import base

from vsched_lib.model import fit
from vsched_lib.model import sharing


class TestSharing(base.BaseTestCase):

    def test_equal_ones_are_the_first(self):
        first, second = (tuple(one) for one in ([7, 'a'], [7, 'a']))
        self.assertIsNot(first, second)
        self.assertIs(first, sharing.one(first))
        self.assertIs(first, sharing.one(second))

    def test_other_types_are_others(self):
        self.assertIs(bool, type(sharing.one(True)))
        self.assertIs(int, type(sharing.one(1)))

    def test_what_hosts_have_in_common_is_there_once(self):
        one, other = (fit.Host(
            4, 4000, 3000, frozenset(['cfs', 'deadline']),
            types.MappingProxyType({('deadline', number): None}),
            policy=fit.Policy(number)) for number in (10_000, 10_000))
        self.assertIs(one.backends, other.backends)
        self.assertIs(one.policy, other.policy)
        self.assertIs(next(iter(one.certified)), next(iter(other.certified)))

# SPDX-License-Identifier: Apache-2.0
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
        one, other = (
            fit.Host(
                4,
                4000,
                3000,
                frozenset(['cfs', 'deadline']),
                types.MappingProxyType({('deadline', number): None}),
                policy=fit.Policy(number),
            )
            for number in (10_000, 10_000)
        )
        self.assertIs(one.backends, other.backends)
        self.assertIs(one.policy, other.policy)
        self.assertIs(next(iter(one.certified)), next(iter(other.certified)))

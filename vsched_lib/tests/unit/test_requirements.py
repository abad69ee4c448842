# SPDX-License-Identifier: Apache-2.0

"""What happens to a test whose part is missing."""

import unittest

import fixtures
import testtools

from vsched_lib.tests import requirements


class RequireTestCase(testtools.TestCase):
    def _environment(self, value):
        self.useFixture(
            fixtures.EnvironmentVariable(requirements.VARIABLE, value)
        )

    def test_optional_part_skips(self):
        self._environment(None)
        error = self.assertRaises(
            unittest.SkipTest,
            requirements.require,
            self,
            'rabbitmq',
            'connection refused',
        )
        self.assertEqual('rabbitmq is missing: connection refused', str(error))

    def test_another_part_required_skips(self):
        self._environment('libvirt,mariadb')
        self.assertRaises(
            unittest.SkipTest,
            requirements.require,
            self,
            'rabbitmq',
            'connection refused',
        )

    def test_required_part_fails(self):
        self._environment('libvirt, rabbitmq')
        error = self.assertRaises(
            AssertionError,
            requirements.require,
            self,
            'rabbitmq',
            'connection refused',
        )
        self.assertIn('connection refused', str(error))

    def test_unknown_part_is_a_mistake(self):
        self._environment('everything')
        self.assertRaises(
            ValueError, requirements.require, self, 'everything', 'no'
        )

    def test_a_name_that_is_no_part_does_not_shrink_a_run(self):
        self._environment('libvirtd,mariadb')
        error = self.assertRaises(
            AssertionError, requirements.require, self, 'libvirt', 'gone'
        )
        self.assertIn('names libvirtd, which is none of the parts', str(error))

    def test_blank_list_requires_nothing(self):
        self._environment(' , ')
        self.assertEqual(frozenset(), requirements.required())

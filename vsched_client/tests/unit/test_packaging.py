# SPDX-License-Identifier: Apache-2.0

"""The distribution of this package alone agrees with that of all."""

import tomllib

from oslotest import base

from vsched_client.tests import entry_points

FOLDER = entry_points.ROOT / 'vsched_client'


class PackagingTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        with open(FOLDER / 'pyproject.toml', 'rb') as file:
            self.own = tomllib.load(file)

    def test_entry_points(self):
        self.assertEqual(
            entry_points.declared(), self.own['project']['entry-points']
        )

    def test_each_entry_point_loads(self):
        for command in entry_points.commands():
            self.assertTrue(entry_points.load(command).__doc__, command)

    def test_packages(self):
        found = {
            '.'.join(path.relative_to(entry_points.ROOT).parent.parts)
            for path in FOLDER.rglob('__init__.py')
            if 'tests' not in path.parts and 'build' not in path.parts
        }
        self.assertEqual(
            found, set(self.own['tool']['setuptools']['packages'])
        )

    def test_what_it_needs_is_in_the_extra(self):
        with open(entry_points.ROOT / 'setup.cfg', encoding='utf-8') as file:
            text = file.read()
        _, _, extra = text.partition('\nclient =\n')
        extra = extra.partition('\n\n')[0]
        for one in (
            *self.own['project']['dependencies'],
            *self.own['project']['optional-dependencies']['openstack'],
        ):
            self.assertIn('    %s\n' % one, extra)

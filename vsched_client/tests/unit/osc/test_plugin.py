# SPDX-License-Identifier: Apache-2.0

"""What python-openstackclient gets, and what importing it costs."""

import argparse
import json
import subprocess
import sys

from osc_lib import exceptions
from oslotest import base

from vsched_client.osc import plugin
from vsched_client.tests import entry_points

#: What no command needs before it runs; ``openstack`` itself has more.
_LATE = ('vsched_client.v1', 'vsched_client.adapter', 'yaml', 'rich')

_IMPORT = """
import importlib, json, sys
from openstackclient import shell
before = set(sys.modules)
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(sorted(set(sys.modules) - before)))
"""


class VersionTestCase(base.BaseTestCase):
    def test_versions(self):
        for version in ('1', '1.0', '1.17'):
            self.assertTrue(plugin.check_api_version(version))
        for version in ('', '2', '1.', 'latest', '1.0\n', '\x1b'):
            error = self.assertRaises(
                exceptions.CommandError, plugin.check_api_version, version
            )
            self.assertIn('accepted: 1 or 1.N', str(error))
            self.assertNotIn('\x1b', str(error))

    def test_option(self):
        parser = plugin.build_option_parser(argparse.ArgumentParser())
        found = parser.parse_args(['--os-vsched-api-version', '1.0'])
        self.assertEqual('1.0', found.os_vsched_api_version)


class ImportTestCase(base.BaseTestCase):
    def test_commands_import_little(self):
        modules = sorted(
            {
                value.partition(':')[0]
                for group in entry_points.declared().values()
                for value in group.values()
            }
        )
        found = json.loads(
            subprocess.run(
                (sys.executable, '-W', 'ignore', '-c', _IMPORT, *modules),
                cwd=entry_points.ROOT,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        self.assertEqual(
            [], [name for name in found if name.startswith(_LATE)]
        )

# SPDX-License-Identifier: Apache-2.0

"""What devstack reads of this tree, as it reads it."""

import pathlib
import re

from oslotest import base

ROOT = pathlib.Path(__file__).resolve().parents[3]


class DevstackTestCase(base.BaseTestCase):
    def test_setup_cfg_names_one_project(self):
        """devstack takes every such line for a name to leave unconstrained."""
        text = (ROOT / 'setup.cfg').read_text()
        self.assertEqual(
            ['vsched'], re.findall(r'^name.*=\s*(.*)$', text, re.MULTILINE)
        )

    def test_the_contracts_of_imports_exist(self):
        text = (ROOT / '.importlinter').read_text()
        self.assertLess(
            10, len(re.findall(r'^\[importlinter:contract:', text, re.M))
        )

    def test_the_plugin_installs_no_uwsgi(self):
        setup = (ROOT / 'setup.cfg').read_text()
        extras = dict(
            re.findall(r'^(\w+) =\n((?:    .*\n)+)', setup, re.MULTILINE)
        )
        self.assertIn('pyuwsgi', extras['uwsgi'])
        library = (ROOT / 'devstack/lib/vsched').read_text()
        for names in re.findall(r'extras\+=\((\w+)\)', library):
            self.assertNotIn('uwsgi', extras[names], names)
            self.assertNotEqual('uwsgi', names)

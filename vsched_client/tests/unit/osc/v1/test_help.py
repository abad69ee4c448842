# SPDX-License-Identifier: Apache-2.0

"""Help and completion of every command."""

import io

from oslotest import base

from vsched_client.tests import entry_points
from vsched_client.tests import shell


class HelpTestCase(base.BaseTestCase):
    def test_each_command_has_help(self):
        for command in entry_points.commands():
            out = io.StringIO()
            found = shell.run(*command.split(), '--help', out=out)
            self.assertEqual(0, found.code, found)
            self.assertIn('usage:', found.out)

    def test_completion(self):
        found = shell.run('complete')
        self.assertEqual(0, found.code, found.err)
        self.assertIn(
            "cmds_cpu_reservation='create list set show unset'", found.out
        )
        (options,) = (
            line
            for line in found.out.splitlines()
            if 'cmds_cpu_reservation_set=' in line
        )
        self.assertIn('--share', options)

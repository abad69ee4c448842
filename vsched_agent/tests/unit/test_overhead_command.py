# SPDX-License-Identifier: Apache-2.0

"""Overhead profiles on the command line."""

import contextlib
import io
import json
import os
import tempfile
from unittest import mock

from oslotest import base

from vsched_agent.cmd import agent as command
from vsched_agent.cmd import overhead
from vsched_agent.profiling import store
from vsched_lib.contract import profiles
from vsched_lib.tests import overhead_profiles


class TestOverheadCommand(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.config = os.path.join(self.folder, 'vsched.conf')
        with open(self.config, 'w') as file:
            file.write('[agent]\nstate_path = %s\n' % self.folder)

    def run_(self, *words):
        self.said = io.StringIO()
        with (
            contextlib.redirect_stdout(io.StringIO()) as told,
            contextlib.redirect_stderr(self.said),
        ):
            code = command.main(['--config-file', self.config, *words])
        return code, told.getvalue()

    def keep(self, **changes):
        found = overhead_profiles.profile(**changes)
        store.Profiles(
            profiles.OverheadProfile,
            os.path.join(self.folder, 'profiling', 'overhead'),
        ).keep(found)
        return found

    def test_show(self):
        code, _ = self.run_('profile', 'show', '--kind', 'overhead')
        self.assertEqual(1, code)
        self.assertIn('profile overhead" makes one', self.said.getvalue())
        kept = self.keep()
        words = ('profile', 'show', '--kind', 'overhead', '--format')
        code, told = self.run_(*words, 'json')
        self.assertEqual(
            (0, kept),
            (code, profiles.OverheadProfile.from_dict(json.loads(told))),
        )
        self.assertIn('net-rx,1000,1,64,', self.run_(*words, 'csv')[1])
        table = self.run_(*words, 'table')[1]
        for text in ('packet received', '12.00', 'unknown', '97.0 %'):
            self.assertIn(text, table)

    def test_a_poor_one_says_so(self):
        self.assertIn(
            'POOR', overhead.table(overhead_profiles.profile(good=False))
        )

    def test_plot(self):
        self.keep()
        code, told = self.run_(
            'profile', 'plot', '--kind', 'overhead', '--output', self.folder
        )
        self.assertEqual(0, code, self.said.getvalue())
        self.assertTrue(os.path.exists(told.strip()))

    def test_dry_run(self):
        guest = os.path.join(self.folder, 'guest')
        with open(guest, 'w'), open(self.config, 'a') as file:
            file.write(
                '[profiling]\nguest_kernel = %s\nguest_initrd = %s\n'
                % (guest, guest)
            )
        code, told = self.run_('profile', 'overhead', '--quick', '--dry-run')
        self.assertEqual(0, code, self.said.getvalue())
        self.assertIn('net-tx, 300 a second of 500 bytes', told)
        self.assertIn('18 loads, about', told)

    def test_without_a_guest(self):
        with open(self.config, 'a') as file:
            file.write('[profiling]\nguest_kernel = /nowhere\n')
        code, _ = self.run_('profile', 'overhead')
        self.assertEqual(2, code)
        self.assertIn('guest_kernel', self.said.getvalue())

    def test_the_doctor(self):
        # Without options of the hypervisor.
        conf = mock.MagicMock()
        conf.__contains__.return_value = False
        conf.agent.state_path = self.folder
        conf.profiling.keep_profiles = 5
        conf.enforcement.backends = ['cfs']
        self.assertIn('not measured', overhead.finding(conf).text)
        self.keep()
        self.assertIn('another kernel', overhead.finding(conf).text)

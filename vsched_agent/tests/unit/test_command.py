# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import os
import tempfile
from unittest import mock

from oslotest import base

from vsched_agent.cmd import agent as command
from vsched_agent.state import directory
from vsched_agent.tests import fakes


class TestCommand(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state_path = os.path.join(folder.name, 'state')
        self.config_file = os.path.join(folder.name, 'vsched.conf')
        with open(self.config_file, 'w', encoding='utf-8') as file:
            file.write('[agent]\nstate_path = %s\n' % self.state_path)
        self.hypervisor = fakes.FakeHypervisor()
        for target, fake in (
            ('vsched_agent.hypervisor.factory.once', self._once),
            # The helpers keep what they are given, for good.
            ('vsched_agent.privileged.use', lambda conf: None),
        ):
            patch = mock.patch(target, fake)
            patch.start()
            self.addCleanup(patch.stop)

    @contextlib.contextmanager
    def _once(self, conf):
        yield self.hypervisor

    def _main(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main(
                ['--config-file', self.config_file, *arguments]
            )
        return code, out.getvalue(), err.getvalue()

    def test_restore_with_nothing_to_do(self):
        code, out, _ = self._main('restore')
        self.assertEqual(0, code)
        self.assertIn('0 instances', out)

    def test_restore_beside_a_running_agent(self):
        held = directory.open_state(self.state_path)
        self.addCleanup(held.close)
        code, out, err = self._main('restore')
        self.assertEqual((1, ''), (code, out))
        self.assertIn('stop it first', err)

    def test_restore_without_a_hypervisor_changes_nothing(self):
        held = directory.open_state(self.state_path)
        held.journal.remember(fakes.domain(1).uuid, 'cfs', 100, {101: {}})
        held.close()
        self.hypervisor.away = True
        code, out, err = self._main('restore')
        self.assertEqual((1, ''), (code, out))
        self.assertIn('nothing was changed', err)
        held = directory.open_state(self.state_path)
        self.addCleanup(held.close)
        self.assertEqual(1, len(held.journal.touched()))

    def test_restore_that_is_told_nothing_has_left(self):
        held = directory.open_state(self.state_path)
        held.journal.remember(fakes.domain(1).uuid, 'cfs', 100, {101: {}})
        held.close()
        code, out, _ = self._main('restore')
        self.assertEqual(0, code)
        self.assertIn('1 that vsched had touched do not run', out)

    def test_a_command_is_needed(self):
        with self.assertRaises(SystemExit) as end:
            self._main()
        self.assertNotEqual(0, end.exception.code)

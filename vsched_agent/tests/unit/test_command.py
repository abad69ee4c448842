# SPDX-License-Identifier: Apache-2.0

import contextlib
import dataclasses
import io
import os
import tempfile
from unittest import mock

from oslotest import base

from vsched_agent.cmd import agent as command
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.hypervisor.xen import vcpu_ids
from vsched_agent.state import directory
from vsched_agent.tests import fake_xl
from vsched_agent.tests import fakes
from vsched_lib.contract import errors


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

    def test_restore_what_does_not_fit_any_more(self):
        """On a Xen host; the next agent sends the event."""
        with open(self.config_file, 'a', encoding='utf-8') as file:
            file.write('host = here\n[hypervisor]\nuri = xen:///system\n')
        xl = self.useFixture(fake_xl.FakeXl())
        xl.start(1)
        xl.start(2, 4)
        xl.vcpus[1, 0] = [10_000, 1_000, False]
        tid = vcpu_ids.encode(1)
        one = dataclasses.replace(
            fakes.domain(1), pid=tid, vcpus=(hypervisor.Vcpu(0, tid),)
        )
        self.hypervisor.running[one.uuid] = one
        held = directory.open_state(self.state_path)
        found = {'period_us': 10_000, 'budget_us': 5_000, 'extratime': True}
        held.journal.remember(one.uuid, 'rtds', tid, {tid: found})
        held.close()
        code, out, err = self._main('restore')
        self.assertEqual(1, code)
        self.assertIn('0 instances are as they were found', out)
        self.assertIn('0 mcpu are left, too little for the 500 mcpu', err)
        self.assertEqual([10_000, 1_000, False], xl.vcpus[1, 0])
        held = directory.open_state(self.state_path)
        self.addCleanup(held.close)
        self.assertEqual([(one.uuid, 'rtds')], held.journal.touched())
        report = held.journal.outbox.oldest()
        (event,) = report.events
        self.assertEqual(
            ('here', errors.Code.RESTORE_INCOMPLETE, one.uuid),
            (report.host, event.code, event.instance_uuid),
        )

    def test_a_command_is_needed(self):
        with self.assertRaises(SystemExit) as end:
            self._main()
        self.assertNotEqual(0, end.exception.code)

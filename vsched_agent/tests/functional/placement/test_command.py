# SPDX-License-Identifier: Apache-2.0

"""``vsched-agent placement`` and the doctor, with a real placement."""

import contextlib
import io
import os
import tempfile
import uuid as uuids

from oslo_config import cfg
import testtools

from vsched_agent.cmd import placement as command
from vsched_agent import conf as agent_conf
from vsched_agent.enforcement import diagnosis
from vsched_agent.placement import inventory
from vsched_agent.placement import sync
from vsched_agent.state import directory
from vsched_lib.contract import placement as names
from vsched_lib.tests import openstack_services


class TestCommand(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.service = openstack_services.shared_placement(self)
        self.client = self.service.client()
        self.compute = 'node-' + uuids.uuid4().hex
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state_path = os.path.join(folder.name, 'state')
        self.conf = self.configured(
            {'compute_name': self.compute, **self.service.options}
        )

    def configured(self, options):
        conf = cfg.ConfigOpts()
        agent_conf.register_opts(conf)
        conf(
            [],
            default_config_dirs=[],
            default_config_files=[
                openstack_services.write_options(
                    self,
                    {
                        'agent': {'state_path': self.state_path},
                        'placement': options,
                    },
                )
            ],
        )
        return conf

    def sync(self):
        self.service.make_compute(self.compute)
        return sync.sync(
            self.client,
            inventory.Desired(
                self.compute,
                1900,
                traits=inventory.traits(['deadline'], frozenset()),
            ),
        )

    def run_command(self, handler):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = handler(self.conf)
        return code, out.getvalue(), err.getvalue()

    def test_show(self):
        outcome = self.sync()
        consumer = str(uuids.uuid4())
        self.service.claim(
            consumer, outcome.uuid, **{names.RESOURCE_CLASS: 400}
        )
        code, out, _ = self.run_command(command._show)
        self.assertEqual(0, code)
        self.assertEqual(
            [
                '%s %s:vsched' % (outcome.uuid, self.compute),
                'CUSTOM_VSCHED_MCPU: 1900 in all, 0 reserved, 400 claimed',
                '  %s claims 400' % consumer,
                'CUSTOM_VSCHED_BACKEND_DEADLINE',
            ],
            out.splitlines(),
        )

    def test_show_nothing(self):
        code, _, err = self.run_command(command._show)
        self.assertEqual(1, code)
        self.assertIn('there is no provider', err)

    def test_remove(self):
        outcome = self.sync()
        consumer = str(uuids.uuid4())
        self.service.claim(
            consumer, outcome.uuid, **{names.RESOURCE_CLASS: 400}
        )
        code, _, err = self.run_command(command._remove)
        self.assertEqual(1, code)
        self.assertIn('instances have claims on it', err)
        self.client.withdraw(consumer, outcome.uuid)
        code, out, _ = self.run_command(command._remove)
        self.assertEqual(
            (0, '%s:vsched is gone\n' % self.compute), (code, out)
        )
        code, out, _ = self.run_command(command._remove)
        self.assertEqual(
            (0, '%s:vsched is not there\n' % self.compute), (code, out)
        )

    def test_remove_while_the_agent_runs(self):
        self.sync()
        held = directory.open_state(self.state_path)
        self.addCleanup(held.close)
        code, _, err = self.run_command(command._remove)
        self.assertEqual(1, code)
        self.assertIn('another vsched agent', err)
        self.assertIsNotNone(self.client.provider(self.compute + ':vsched'))

    def test_doctor(self):
        def level():
            return command.finding(self.conf).level

        self.assertEqual(diagnosis.Level.PROBLEM, level())
        self.service.make_compute(self.compute)
        self.assertEqual(diagnosis.Level.NOTE, level())
        sync.sync(self.client, inventory.Desired(self.compute, 1900))
        self.assertEqual(diagnosis.Level.OK, level())
        self.assertIn('1900 mcpu', command.finding(self.conf).text)

    def test_doctor_without_placement(self):
        found = command.finding(self.configured({}))
        self.assertEqual(diagnosis.Level.NOTE, found.level)
        found = command.finding(
            self.configured(
                {**self.service.options, 'endpoint': 'http://127.0.0.1:9'}
            )
        )
        self.assertEqual(diagnosis.Level.PROBLEM, found.level)

# SPDX-License-Identifier: Apache-2.0

import os
import socket
import sys
import threading

import ddt
import fixtures
from oslo_config import cfg
from oslo_privsep import capabilities
from oslo_privsep import daemon
from oslotest import base

from vsched_agent.privileged.budget_expiry import budgets
from vsched_agent.privileged import cgroup
from vsched_agent.privileged import channel
from vsched_agent.privileged import context
from vsched_agent.privileged import preemption
from vsched_agent.privileged import sched
from vsched_agent.tests import in_process


@ddt.ddt
class TestContext(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        self.conf([])

    def context(self, module):
        one = {'sched': sched.sched_pctxt, 'cgroup': cgroup.cgroup_pctxt}
        made = one[module]
        self.addCleanup(setattr, made, '_given', made._given)
        made.use(self.conf)
        return made

    def test_each_has_one_power(self):
        # As the helper's own process sees it, without options of ours.
        for made, capability in (
            (sched.sched_pctxt, capabilities.CAP_SYS_NICE),
            (budgets.budgets_pctxt, capabilities.CAP_SYS_NICE),
            (preemption.turns_pctxt, capabilities.CAP_SYS_NICE),
            (cgroup.cgroup_pctxt, capabilities.CAP_DAC_OVERRIDE),
        ):
            self.addCleanup(setattr, made, '_given', made._given)
            made._given = None
            self.assertEqual([capability], list(made.conf.capabilities))

    @ddt.data('sched', 'cgroup')
    def test_root_needs_nobody(self, name):
        self.patch(os, 'geteuid', lambda: 0)
        made = self.context(name)
        self.assertEqual(
            (
                sys.executable,
                '-I',
                '-W',
                'ignore',
                '-m',
                'vsched_agent.privileged.helper',
                name,
            ),
            made.command(),
        )

    def test_others_ask_sudo(self):
        self.patch(os, 'geteuid', lambda: 1000)
        command = self.context('sched').command()
        self.assertEqual(('sudo', '-n', sys.executable, '-I'), command[:4])

    def test_or_connect_where_a_service_manager_listens(self):
        made = self.context('sched')
        folder = self.useFixture(fixtures.TempDir()).path
        path = folder + '/sched.sock'
        self.conf.set_override('helper_socket', path, made.cfg_section)
        for uid in (0, 1000):
            self.patch(os, 'geteuid', lambda uid=uid: uid)
            self.assertIsNone(made.helper_socket())
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            self.assertEqual(path, made.helper_socket())
            self.conf.set_override('helper_command', 'doas', made.cfg_section)
            self.assertIsNone(made.helper_socket())

    def test_nobody_listens(self):
        made = self.context('sched')
        folder = self.useFixture(fixtures.TempDir()).path
        path = folder + '/sched.sock'
        self.conf.set_override('helper_socket', path, made.cfg_section)
        self.patch(os, 'geteuid', lambda: 1000)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
        failure = self.assertRaises(daemon.FailedToDropPrivileges, made.start)
        self.assertIn(path, str(failure))
        self.assertIsNone(made.channel)

    def test_a_helper_that_does_not_start(self):
        made = self.context('sched')
        for command, why in (
            ('/bin/sh -c "echo no >&2; exit 3"', 'no'),
            ('/nowhere', '/nowhere: No such file'),
        ):
            self.conf.set_override('helper_command', command, made.cfg_section)
            failure = self.assertRaises(
                daemon.FailedToDropPrivileges, made.start
            )
            self.assertIn(why, str(failure))
            self.assertIsNone(made.channel)

    def test_an_operator_may_say_otherwise(self):
        made = self.context('sched')
        self.conf.set_override(
            'helper_command', 'doas "my helper" -x', made.cfg_section
        )
        self.assertEqual(('doas', 'my helper', '-x', 'sched'), made.command())

    def test_threads_at_once_start_one_helper(self):
        log = self.useFixture(fixtures.FakeLogger('oslo_privsep'))
        made = context.Context('made', __name__, 'vsched_made', [])
        self.patch(os, 'geteuid', lambda: 0)
        started, go = [], threading.Event()

        def spawn(context, command):
            started.append(context)
            go.wait(10)
            return object()

        self.patch(channel, 'spawn', spawn)
        threads = [threading.Thread(target=made.start) for _ in range(3)]
        for one in threads:
            one.start()
        go.set()
        for one in threads:
            one.join()
        self.assertEqual([made], started)
        self.assertEqual('', log.output)

    def test_in_process_and_back(self):
        made = sched.sched_pctxt
        with in_process.entrypoints(made):
            self.assertFalse(made.client_mode)
        self.assertTrue(made.client_mode)

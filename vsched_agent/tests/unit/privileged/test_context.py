# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import os
import sys
import threading

import ddt
import fixtures
from oslo_config import cfg
from oslo_privsep import capabilities
from oslo_privsep import daemon
from oslotest import base

from vsched_agent.privileged import budgets
from vsched_agent.privileged import cgroup
from vsched_agent.privileged import context
from vsched_agent.privileged import sched
from vsched_agent.privileged import turns


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
                (turns.turns_pctxt, capabilities.CAP_SYS_NICE),
                (cgroup.cgroup_pctxt, capabilities.CAP_DAC_OVERRIDE)):
            self.addCleanup(setattr, made, '_given', made._given)
            made._given = None
            self.assertEqual([capability], list(made.conf.capabilities))

    @ddt.data('sched', 'cgroup')
    def test_root_needs_nobody(self, name):
        self.patch(os, 'geteuid', lambda: 0)
        made = self.context(name)
        self.assertEqual(
            [sys.executable, '-m', 'oslo_privsep.daemon',
             '--privsep_context', made.pypath, '--privsep_sock_path', '/s'],
            made.helper_command('/s'))

    def test_others_ask_sudo(self):
        self.patch(os, 'geteuid', lambda: 1000)
        command = self.context('sched').helper_command('/s')
        self.assertEqual(['sudo', '-n', sys.executable], command[:3])

    def test_an_operator_may_say_otherwise(self):
        made = self.context('sched')
        self.conf.set_override(
            'helper_command', 'doas "my helper" -x', made.cfg_section)
        self.assertEqual(
            ['doas', 'my helper', '-x', '--privsep_context'],
            made.helper_command('/s')[:4])

    def test_threads_at_once_start_one_helper(self):
        log = self.useFixture(fixtures.FakeLogger())
        made = context.Context('made', __name__, 'vsched_made', [])
        started, go = [], threading.Event()

        def channel(context):
            started.append(context)
            go.wait(10)
            return object()

        self.patch(daemon, 'RootwrapClientChannel', channel)
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
        with context.in_process(made):
            self.assertFalse(made.client_mode)
        self.assertTrue(made.client_mode)

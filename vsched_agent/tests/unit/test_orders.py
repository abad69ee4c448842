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
import tempfile

from oslo_config import cfg
from oslotest import base

from vsched_agent import conf as agent_conf
from vsched_agent import orders
from vsched_agent import privileged
from vsched_lib.contract import messages


def order(**parameters):
    return messages.JobOrder(
        'u-1', messages.JobKind.PROFILE_ERROR, messages.JobWanted.RUN, 1,
        parameters)


class TestOrders(base.BaseTestCase):

    def test_parameters_become_words(self):
        self.assertEqual(
            ['error', '--json', '--watch-input', '--run', 'u-1',
             '--backends', 'deadline,cfs', '--contend', '0', '--in-guest',
             '--periods-us', '10000,20000', '--seconds', '60',
             '--shares', '1,20.5'],
            orders.arguments(order(
                shares_pct=[1, 20.5], backends=['deadline', 'cfs'],
                periods_us=[10_000, 20_000], seconds=60, contend=0,
                in_guest=True, quick=False)))

    def test_each_kind_has_its_run(self):
        for kind in messages.JobKind:
            words = orders.arguments(messages.JobOrder(
                'u-1', kind, messages.JobWanted.RUN, 1, {'quick': True}))
            self.assertEqual(
                [kind.removeprefix('profile-'), '--json', '--watch-input',
                 '--run', 'u-1', '--quick'], words)

    def test_one_that_is_not_known_is_not_run(self):
        self.assertRaises(ValueError, orders.arguments, order(shell='ls'))

    def test_a_run_has_the_options_of_its_agent(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        conf = cfg.ConfigOpts()
        agent_conf.register_opts(conf)
        conf([], default_config_files=[], default_config_dirs=[])
        privileged.use(conf)
        conf.set_override('state_path', folder.name, 'agent')
        conf.set_override('reserve_mcpu', 300, 'agent')
        conf.set_override('backends', ['deadline'], 'enforcement')
        conf.set_override('uri', 'qemu:///$$session', 'hypervisor')
        conf.set_override('helper_command', 'sudo -n x',
                          privileged.SECTIONS[0])
        words = orders.command(conf)
        path = words[words.index('--config-file') + 1]
        self.assertEqual(['run.conf'], os.listdir(os.path.dirname(path)))
        again = cfg.ConfigOpts()
        agent_conf.register_opts(again)
        again(['--config-file', path], default_config_files=[],
              default_config_dirs=[])
        privileged.use(again)
        for group, options in agent_conf.list_opts():
            # It has no business there, and needs no password.
            for option in options if group.name != 'placement' else ():
                self.assertEqual(conf[group.name][option.dest],
                                 again[group.name][option.dest], option.dest)
        self.assertEqual(
            'sudo -n x', again[privileged.SECTIONS[0]].helper_command)

    def test_what_one_is_told_is_none_of_anothers(self):
        # oslo.config's own copy of a group shares its values.
        one, other = cfg.ConfigOpts(), cfg.ConfigOpts()
        for conf in (one, other):
            agent_conf.register_opts(conf)
            conf([], default_config_files=[], default_config_dirs=[])
        before = other.agent.state_path
        one.set_override('state_path', '/elsewhere', 'agent')
        self.assertEqual(before, other.agent.state_path)
        self.assertEqual('/elsewhere', one.agent.state_path)

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

"""``vsched-manage flavor`` on a real Nova."""

import contextlib
import io
from unittest import mock

from vsched_api.cmd import flavor as flavor_command
from vsched_api.cmd import manage
from vsched_standalone.tests.functional.nova import cloud

CLAIM = 'resources_VSCHED:CUSTOM_VSCHED_MCPU'
DEADLINE = 'trait_VSCHED:CUSTOM_VSCHED_BACKEND_DEADLINE'


class TestFlavors(cloud.Cloud):

    def setUp(self):
        super().setUp()
        patch = mock.patch.object(
            flavor_command, 'client', autospec=True,
            side_effect=lambda conf: self.nova)
        patch.start()
        self.addCleanup(patch.stop)

    def manage(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(err):
            status = manage.main(['flavor', *words])
        return status, out.getvalue(), err.getvalue()

    def specs(self, name):
        return dict(self.found(name).extra_specs)

    def test_set_writes_all_of_it(self):
        name = self.flavor(vcpus=2)
        status, out, err = self.manage(
            'set', name, 'cpu_runtime_us=6001', 'vsched:backend=deadline')
        self.assertEqual((0, ''), (status, err))
        self.assertEqual({
            'vsched:cpu_runtime_us': '6001', 'vsched:backend': 'deadline',
            CLAIM: '601', DEADLINE: 'required', 'group_policy': 'none'},
            self.specs(name))
        self.assertIn('%s: %s = 601' % (name, CLAIM), out)
        self.assertEqual(0, self.manage('show', name)[0])

    def test_set_takes_away_what_has_no_value(self):
        name = self.flavor(vcpus=2)
        self.manage('set', name, 'cpu_runtime_us=6000', 'backend=deadline',
                    'weight=7')
        self.manage('set', name, 'backend=')
        self.assertEqual({
            'vsched:cpu_runtime_us': '6000', 'vsched:weight': '7',
            CLAIM: '600', 'group_policy': 'none'}, self.specs(name))
        self.manage('set', name, 'cpu_runtime_us=')
        self.assertEqual({'vsched:weight': '7'}, self.specs(name))

    def test_set_refuses_what_makes_no_sense_and_changes_nothing(self):
        name = self.flavor()
        for words, said in (
                (['cpu_runtime_us=30000'], 'more than the period'),
                (['cpu_runtime_us=many'], 'accepted: a whole number'),
                (['cpu_runtime=6000'], 'accepted is KEY=VALUE'),
                (['cpu_mode=capped'], 'has no meaning without')):
            status, out, err = self.manage('set', name, *words)
            self.assertEqual((2, ''), (status, out))
            self.assertIn(said, err)
        self.assertEqual({}, self.specs(name))

    def test_what_others_have_stays(self):
        others = {'hw:mem_page_size': 'large', 'group_policy': 'isolate',
                  'resources1:CUSTOM_GPU': '1',
                  'trait1:HW_NIC_SRIOV': 'required'}
        name = self.flavor(**others)
        self.manage('set', name, 'cpu_runtime_us=6000')
        self.assertEqual(
            {**others, 'vsched:cpu_runtime_us': '6000', CLAIM: '300'},
            self.specs(name))
        self.manage('set', name, 'cpu_runtime_us=')
        self.assertEqual(others, self.specs(name))

    def test_show_and_sync(self):
        right, wrong, strange, none = (
            self.flavor(), self.flavor(**{
                'vsched:cpu_runtime_us': '10000', CLAIM: '300',
                DEADLINE: 'required'}),
            self.flavor(**{'hw:mem_page_size': 'large'}),
            self.flavor(**{CLAIM: '100', 'group_policy': 'none'}))
        self.manage('set', right, 'cpu_runtime_us=6000')
        status, out, _ = self.manage('show')
        self.assertEqual(1, status)
        self.assertEqual([
            '%s: 6000 us every 20000 us for each of 1 vCPUs, claims 300 '
            'mcpu' % right,
            '%s: 10000 us every 20000 us for each of 1 vCPUs, claims 500 '
            'mcpu' % wrong,
            '  group_policy is missing, must be none',
            '  %s is 300, must be 500' % CLAIM,
            '  %s is required, must go' % DEADLINE,
            '%s: no reservation' % none,
            '  group_policy is none, must go',
            '  %s is 100, must go' % CLAIM,
        ], out.splitlines())

        before = self.specs(wrong)
        self.assertEqual(1, self.manage('sync', '--dry-run')[0])
        self.assertEqual(before, self.specs(wrong))
        self.assertEqual(0, self.manage('sync')[0])
        self.assertEqual({'vsched:cpu_runtime_us': '10000', CLAIM: '500',
                          'group_policy': 'none'}, self.specs(wrong))
        self.assertEqual({}, self.specs(none))
        self.assertEqual({'hw:mem_page_size': 'large'}, self.specs(strange))
        self.assertEqual(0, self.manage('show')[0])
        self.assertEqual(0, self.manage('sync', '--dry-run')[0])

    def test_a_flavor_nobody_knows(self):
        status, out, err = self.manage('show', 'unknown')
        self.assertEqual((2, ''), (status, out))
        self.assertIn('there is no flavor unknown', err)

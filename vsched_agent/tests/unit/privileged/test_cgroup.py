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

import errno
import os
import pathlib

import fixtures
from oslotest import base

from vsched_agent.privileged import cgroup
from vsched_agent.privileged import context


class TestWrite(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        manager = context.in_process(cgroup.cgroup_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.outside = top / 'cpu.max'
        self.outside.write_text('keep')
        self.root = top / 'cgroup'
        self.root.mkdir()
        self.patch(cgroup, 'ROOT', str(self.root))
        self.quota = self.file('cpu.cfs_quota_us', '-1')
        self.period = self.file('cpu.cfs_period_us', '100000')

    def file(self, name, text):
        path = self.root / name
        path.write_text(text)
        return str(path)

    def read(self, path):
        return pathlib.Path(path).read_text()

    def test_all(self):
        self.assertEqual({}, cgroup.write(
            [(self.period, '20000'), (self.quota, '6000')]))
        self.assertEqual(('20000', '6000'),
                         (self.read(self.period), self.read(self.quota)))

    def test_or_none(self):
        missing = str(self.root / 'gone' / 'cpu.max')
        failure = cgroup.write([(self.quota, '6000'), (missing, '1 2')])
        self.assertEqual((missing, errno.ENOENT, []), (
            failure['path'], failure['errno'], failure['unrestored']))
        self.assertEqual('-1', self.read(self.quota))

    def test_an_empty_value_is_a_value(self):
        cpus = self.file('cpuset.cpus', '0-1')
        self.assertEqual({}, cgroup.write([(cpus, '')]))
        self.assertEqual('\n', self.read(cpus))

    def test_only_files_of_ours_below_the_mounts(self):
        os.symlink(self.outside, self.root / 'cpu.cfs_period_us.link')
        os.symlink(self.outside.parent, self.root / 'up')
        for path in (
                str(self.outside), self.file('memory.max', '1'),
                str(self.root / '..' / 'cpu.max'), '/etc/cpu.max',
                str(self.root / 'cpu.cfs_period_us.link'),
                str(self.root / 'up' / 'cpu.max')):
            self.assertRaises(
                PermissionError, cgroup.write,
                [(self.quota, '6000'), (path, '0')])
        self.assertEqual('-1', self.read(self.quota))
        self.assertEqual('keep', self.read(self.outside))

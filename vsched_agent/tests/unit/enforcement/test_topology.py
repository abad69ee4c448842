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

import pathlib
import tempfile

from oslotest import base

from vsched_agent.enforcement import topology


class TopologyTest(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.cpus = pathlib.Path(self.root, 'sys/devices/system/cpu')
        self.cpus.mkdir(parents=True)

    def test_siblings_side_by_side(self):
        (self.cpus / 'online').write_text('0-7\n')
        for cpu in range(8):
            folder = self.cpus / ('cpu%d' % cpu) / 'topology'
            folder.mkdir(parents=True)
            (folder / 'core_id').write_text('%d\n' % (cpu // 2 % 2))
            (folder / 'physical_package_id').write_text('%d\n' % (cpu % 2))
        self.assertEqual([0, 4, 2, 6, 1, 5, 3, 7],
                         topology.ordered_cpus(self.root))

    def test_a_machine_that_does_not_tell(self):
        (self.cpus / 'online').write_text('0,2\n')
        self.assertEqual([0, 2], topology.ordered_cpus(self.root))

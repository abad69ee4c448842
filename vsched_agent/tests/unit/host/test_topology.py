# SPDX-License-Identifier: Apache-2.0

import pathlib
import tempfile

from oslotest import base

from vsched_agent.host import topology


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
        self.assertEqual(
            [0, 4, 2, 6, 1, 5, 3, 7], topology.ordered_cpus(self.root)
        )

    def test_a_machine_that_does_not_tell(self):
        (self.cpus / 'online').write_text('0,2\n')
        self.assertEqual([0, 2], topology.ordered_cpus(self.root))

# SPDX-License-Identifier: Apache-2.0

"""What a stage needs, makes and leaves."""

import os
import tempfile

from oslotest import base

from vsched_agent.profiling.overhead import stage
from vsched_lib.contract import errors


class StageTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def props(self, **changes):
        return stage.Props(
            **{
                'kernel': '/nowhere/vmlinux',
                'initrd': '/nowhere/initrd',
                'uri': 'test:///default',
                'run_dir': self.folder,
                'console_folder': self.folder,
                'disk_folder': self.folder,
                **changes,
            }
        )

    def test_a_guest_that_is_not_there(self):
        problem = self.assertRaises(
            errors.VschedError, stage.Stage, self.props()
        )
        self.assertIn('/nowhere/vmlinux', problem.detail)
        self.assertIn('guest_kernel', problem.detail)

    def test_a_disk_is_written_whole(self):
        path = os.path.join(self.folder, 'a.img')
        stage._fill(path)
        found = os.stat(path)
        self.assertEqual(stage.DISK_BYTES, found.st_size)
        self.assertGreaterEqual(found.st_blocks * 512, stage.DISK_BYTES // 2)

    def test_disks_of_a_killed_one_are_removed(self):
        names = [
            'vsched-calibration-4194305-0.img',
            'vsched-calibration-%d-0.img' % os.getpid(),
            'vsched-calibration-4194305-0.console',
            'instance.img',
        ]
        for name in names:
            with open(os.path.join(self.folder, name), 'w'):
                pass
        kernel = os.path.join(self.folder, names[3])
        stage.Stage(self.props(kernel=kernel, initrd=kernel))._remove_stale()
        self.assertEqual(sorted(names[1:]), sorted(os.listdir(self.folder)))

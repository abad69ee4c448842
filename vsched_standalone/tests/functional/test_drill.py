# SPDX-License-Identifier: Apache-2.0

"""Every part of a deployment is killed; nothing of it is lost."""

from oslotest import base

from vsched_standalone.tests import drill
from vsched_standalone.tests import drill_scene
from vsched_standalone.tests import private_services


class TestDrill(base.BaseTestCase):
    """Each part is killed at least once; all come back by themselves."""

    def setUp(self):
        super().setUp()
        drill_scene.require(self)

    def test_every_part_is_killed(self):
        scene = self.useFixture(drill_scene.Scene(private_services.MariaDB))
        found = drill.run(scene, 0, seed=1, pause_s=(0.5, 2))
        self.assertEqual(
            set(drill_scene.COMPONENTS), set(found['recovered_s'])
        )
        self.assertEqual(0, found['gap_s'])
        self.assertEqual(0, found['doubled_promises'])
        self.assertEqual(0, found['samples_repeated'])
        self.assertLess(found['share_error_median'], 0.02, found)
        self.assertEqual(0, found['samples_missing_us'])

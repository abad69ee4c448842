# SPDX-License-Identifier: Apache-2.0

"""Every part of a deployment is killed; nothing of it is lost."""

import os

from oslotest import base

from vsched_lib.tests import requirements
from vsched_standalone.tests import drill
from vsched_standalone.tests import drill_scene
from vsched_standalone.tests import private_services
from vsched_standalone.tests.region import hypervisor


class TestDrill(base.BaseTestCase):
    """Each part is killed at least once; all come back by themselves."""

    def setUp(self):
        super().setUp()
        hypervisor.require(self)
        for part, there in (
            ('rabbitmq', os.path.exists('/usr/lib/rabbitmq')),
            ('mariadb', os.path.exists('/usr/sbin/mariadbd')),
        ):
            if not there:
                requirements.require(self, part, 'it is not installed')
        if not private_services.answers(4369):
            requirements.require(self, 'rabbitmq', 'epmd does not answer')

    def test_every_part_is_killed(self):
        scene = self.useFixture(drill_scene.Scene(private_services.MariaDB))
        found = drill.run(scene, 0, seed=1, pause_s=(0.5, 2))
        self.assertEqual(
            set(drill_scene.COMPONENTS), set(found['recovered_s'])
        )
        self.assertEqual(0, found['gap_s'])
        self.assertEqual(0, found['doubled_promises'])
        self.assertEqual(0, found['samples_repeated'])
        self.assertAlmostEqual(0.6, found['share_median'], delta=0.02)
        self.assertEqual(0, found['samples_missing_us'])

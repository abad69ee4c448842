# SPDX-License-Identifier: Apache-2.0

"""Agent, collector and API of the last landed commit are upgraded.

Under way, the kernel holds what is reserved, and no sample is lost.
"""

import time

from oslotest import base

from vsched_standalone.tests import drill
from vsched_standalone.tests import drill_scene
from vsched_standalone.tests import outages
from vsched_standalone.tests import private_services
from vsched_standalone.tests import releases


class TestLandedAgent(base.BaseTestCase):
    """A host with two reserved VMs, and neighbours that burn its CPUs."""

    def setUp(self):
        super().setUp()
        drill_scene.require(self)
        self.landed = self.useFixture(releases.Release(releases.LANDED))
        self.scene = self.useFixture(
            drill_scene.Scene(private_services.Postgres, self.landed)
        )
        self.services = self.scene.services

    def replace(self, release, *names):
        """Restart services, one by one, with the programs of a release."""
        self.services.release = release
        for name in names:
            self.services.stop(name)
            self.services.start(name)
            drill.recover(self.scene, time.time())

    def applied(self):
        return len(
            self.services.get(
                '/v1/events', code='vsched.reservation.applied', limit=1000
            )['events']
        )

    def test_there_and_back(self):
        applied = self.applied()
        with drill.Sampler(self.scene) as sampler:
            self.services.release = None
            self.services.manage('db', 'sync')
            self.replace(None, 'collector', 'api', 'agent')
            # The guide's order of a downgrade.
            self.replace(self.landed, 'agent', 'api', 'collector')
            self.replace(None, 'collector', 'api', 'agent')
        self.assertEqual((0, 0), (sampler.gap_s, sampler.excess))
        self.assertEqual(applied, self.applied())
        for uuid in self.scene.tids:
            found = outages.samples(self.services, uuid)
            self.assertEqual((0, 0), (found.missing_us, found.repeated), uuid)

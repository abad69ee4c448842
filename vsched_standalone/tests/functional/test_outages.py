# SPDX-License-Identifier: Apache-2.0


from oslotest import base

from vsched_lib.tests import requirements
from vsched_standalone.tests import outages
from vsched_standalone.tests import private_services


class TestOutages(base.BaseTestCase):
    """One deployment, one outage after the other."""

    def setUp(self):
        super().setUp()
        outages.require_services(self)
        if not private_services.answers(4369):
            requirements.require(self, 'rabbitmq', 'epmd does not answer')

    def test_nothing_is_lost(self):
        scene = self.useFixture(outages.Scene())

        killed = outages.agent_killed(scene, 6)
        for name, stolen in zip(
            ('share_while_dead', 'share_after'), scene.stolen, strict=True
        ):
            self.assertAlmostEqual(0.6, killed[name], delta=0.02 + stolen)
        self.assertEqual(0, killed['applied_again'])
        self.assertEqual(0, killed['drift_events'])
        self.assertEqual('applied', killed['state'])
        self.assertTrue(killed['since_kept'])

        # The kill itself leaves a gap; what follows must not.
        before = scene.samples()
        broker = outages.broker_stopped(scene, 15)
        self.assertAlmostEqual(
            0.6, broker['share_while_away'], delta=0.02 + scene.stolen[-1]
        )
        self.assertEqual(0, broker['samples']['repeated'])
        self.assertEqual(before.missing_us, broker['samples']['missing_us'])

        database = outages.database_stopped(scene, 10)
        self.assertEqual(503, database['status'])
        self.assertEqual('vsched.database.unavailable', database['code'])
        self.assertEqual(200, database['status_after'])
        self.assertEqual(0, database['samples']['repeated'])
        self.assertEqual(before.missing_us, database['samples']['missing_us'])

# SPDX-License-Identifier: Apache-2.0

"""The plugin with the functions of a checkout of devstack.

``VSCHED_DEVSTACK`` names the checkout. ``tools/test.sh`` fetches one; where it
cannot, it says so and leaves this module out.
``tools.tests.unit.test_devstack`` runs the phases with doubles of devstack's
functions everywhere.
"""

import os

import fixtures
from oslotest import base

from tools.tests.functional import commands

VARIABLE = 'VSCHED_DEVSTACK'
#: Only a hang takes as long.
PATIENCE_S = 1200


class TestDevstack(base.BaseTestCase):
    def test_the_smoke_run(self):
        checkout = os.environ.get(VARIABLE)
        if not checkout:
            self.skipTest('%s names no checkout of devstack' % VARIABLE)
        # Longer than a test may take by default.
        self.useFixture(fixtures.Timeout(PATIENCE_S + 30, gentle=True))
        said = commands.run(
            'tools/devstack-smoke.sh', checkout, timeout_s=PATIENCE_S
        )
        self.assertEqual('passed', said.splitlines()[-1])

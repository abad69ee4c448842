# SPDX-License-Identifier: Apache-2.0

import itertools

from oslotest import base

from vsched_agent.enforcement import base as enforcement
from vsched_agent.tests import backend_suite
from vsched_agent.tests import fakes
from vsched_lib.model import reservation


class TestFakeBackend(backend_suite.BackendSuite, base.BaseTestCase):
    """The stand-in of other unit tests does what the real ones do."""

    def setUp(self):
        super().setUp()
        self.backend = fakes.FakeBackend(reservation.Backend.DEADLINE)
        self.tids = itertools.count(100)

    def targets(self, count):
        return [
            enforcement.Target(index, next(self.tids))
            for index in range(count)
        ]

    def end(self, target):
        self.backend.dead.add(target.tid)

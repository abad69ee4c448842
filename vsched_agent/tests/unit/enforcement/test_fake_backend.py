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
        return [enforcement.Target(index, next(self.tids))
                for index in range(count)]

    def end(self, target):
        self.backend.dead.add(target.tid)

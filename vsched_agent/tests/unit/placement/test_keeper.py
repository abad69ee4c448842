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

"""What the keeper says of what placement does."""

from unittest import mock

from oslotest import base

from vsched_agent.placement import desired
from vsched_agent.placement import keeper
from vsched_agent.placement import sync
from vsched_lib.contract import errors
from vsched_lib.contract import placement as names
from vsched_lib.openstack import placement
from vsched_lib.openstack import session

State = names.PlacementState


class TestKeeper(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.events = []
        self.connected = 0
        self.keeper = keeper.Keeper(
            self.connect, 60,
            lambda code, severity, detail: self.events.append(code))
        patcher = mock.patch.object(sync, 'sync', autospec=True)
        self.sync = patcher.start()
        self.addCleanup(patcher.stop)
        self.sync.return_value = self.outcome()

    def connect(self):
        self.connected += 1
        return mock.sentinel.client

    def outcome(self, claimed_mcpu=0):
        return sync.Outcome(
            'uuid', placement.Inventory(1000, 100), claimed_mcpu, True)

    def want(self):
        self.keeper.want(desired.Desired('here', 900))

    def test_nothing_is_written_before_the_host_is_known(self):
        self.keeper.look()
        self.assertFalse(self.sync.called)
        self.assertEqual(State.WAITING, self.keeper.info().state)

    def test_success(self):
        self.want()
        self.keeper.look()
        self.keeper.look()
        self.assertEqual(
            names.PlacementInfo(State.SYNCED, '', 'uuid', 900, 0),
            self.keeper.info())
        self.assertEqual([errors.Code.PLACEMENT_SYNCED], self.events)
        self.assertEqual(1, self.connected)

    def test_each_failure_is_told_once(self):
        self.want()
        for problem in (session.Unavailable('away'),
                        session.Unavailable('away'),
                        placement.Rejected('no'),
                        sync.NoCompute('none'), sync.NoCompute('none')):
            self.sync.side_effect = problem
            self.keeper.look()
            self.assertEqual(str(problem), self.keeper.info().detail)
        self.assertEqual([errors.Code.PLACEMENT_FAILED,
                          errors.Code.PLACEMENT_WAITING], self.events)
        # After a failure somebody else may be there.
        self.assertEqual(4, self.connected)

    def test_figures_of_the_last_success_stay(self):
        self.want()
        self.sync.return_value = self.outcome(300)
        self.keeper.look()
        self.sync.side_effect = session.Unavailable('away')
        self.keeper.look()
        self.assertEqual(
            names.PlacementInfo(State.FAILED, 'away', 'uuid', 900, 300),
            self.keeper.info())

    def test_more_claimed_than_there_is_is_told_when_it_begins(self):
        self.want()
        for claimed_mcpu in (900, 901, 950, 0, 1000):
            self.sync.return_value = self.outcome(claimed_mcpu)
            self.keeper.look()
        self.assertEqual(
            [errors.Code.PLACEMENT_SYNCED,
             errors.Code.PLACEMENT_OVERCLAIMED,
             errors.Code.PLACEMENT_OVERCLAIMED], self.events)

    def test_stops_without_having_started(self):
        self.keeper.stop()

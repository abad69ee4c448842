# SPDX-License-Identifier: Apache-2.0

"""What the synchronizer reports of placement."""

from unittest import mock

from oslotest import base

from vsched_agent.placement import inventory
from vsched_agent.placement import sync
from vsched_agent.placement import synchronizer
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
        self.synchronizer = synchronizer.Synchronizer(
            self.connect,
            60,
            lambda code, severity, detail: self.events.append(code),
        )
        patcher = mock.patch.object(sync, 'sync', autospec=True)
        self.sync = patcher.start()
        self.addCleanup(patcher.stop)
        self.sync.return_value = self.outcome()

    def connect(self):
        self.connected += 1
        return mock.sentinel.client

    def outcome(self, claimed_mcpu=0):
        return sync.Outcome(
            'uuid', placement.Inventory(1000, 100), claimed_mcpu, True
        )

    def set_desired(self):
        self.synchronizer.set_desired(inventory.Desired('here', 900))

    def test_nothing_is_written_before_the_host_is_known(self):
        self.synchronizer.run_once()
        self.assertFalse(self.sync.called)
        self.assertEqual(State.WAITING, self.synchronizer.info().state)

    def test_success(self):
        self.set_desired()
        self.synchronizer.run_once()
        self.synchronizer.run_once()
        self.assertEqual(
            names.PlacementInfo(State.SYNCED, '', 'uuid', 900, 0),
            self.synchronizer.info(),
        )
        self.assertEqual([errors.Code.PLACEMENT_SYNCED], self.events)
        self.assertEqual(1, self.connected)

    def test_each_failure_is_reported_once(self):
        self.set_desired()
        for problem in (
            session.Unavailable('away'),
            session.Unavailable('away'),
            placement.Rejected('no'),
            sync.NoCompute('none'),
            sync.NoCompute('none'),
        ):
            self.sync.side_effect = problem
            self.synchronizer.run_once()
            self.assertEqual(str(problem), self.synchronizer.info().detail)
        self.assertEqual(
            [errors.Code.PLACEMENT_FAILED, errors.Code.PLACEMENT_WAITING],
            self.events,
        )
        # After a failure another service may answer.
        self.assertEqual(4, self.connected)

    def test_figures_of_the_last_success_stay(self):
        self.set_desired()
        self.sync.return_value = self.outcome(300)
        self.synchronizer.run_once()
        self.sync.side_effect = session.Unavailable('away')
        self.synchronizer.run_once()
        self.assertEqual(
            names.PlacementInfo(State.FAILED, 'away', 'uuid', 900, 300),
            self.synchronizer.info(),
        )

    def test_overclaiming_is_reported_when_it_begins(self):
        self.set_desired()
        for claimed_mcpu in (900, 901, 950, 0, 1000):
            self.sync.return_value = self.outcome(claimed_mcpu)
            self.synchronizer.run_once()
        self.assertEqual(
            [
                errors.Code.PLACEMENT_SYNCED,
                errors.Code.PLACEMENT_OVERCLAIMED,
                errors.Code.PLACEMENT_OVERCLAIMED,
            ],
            self.events,
        )

    def test_stops_without_having_started(self):
        self.synchronizer.stop()

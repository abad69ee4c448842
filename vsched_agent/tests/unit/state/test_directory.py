# SPDX-License-Identifier: Apache-2.0

import os
import tempfile
import threading
from unittest import mock

from oslotest import base

from vsched_agent.reservations import admission
from vsched_agent.reservations import enforcer
from vsched_agent.state import directory
from vsched_agent.tests import fakes
from vsched_lib.model import reservation

CFS = reservation.Backend.CFS


class TestOpenState(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, 'state')

    def test_makes_the_folder_and_the_journal(self):
        held = directory.open_state(self.path)
        self.addCleanup(held.close)
        self.assertEqual([], held.journal.touched())
        self.assertEqual(0, os.stat(self.path).st_mode & 0o007)

    def test_one_at_a_time(self):
        held = directory.open_state(self.path)
        problem = self.assertRaises(
            directory.InUse, directory.open_state, self.path
        )
        self.assertIn(self.path, str(problem))
        held.close()
        directory.open_state(self.path).close()

    def test_waits_for_the_remains_of_a_killed_one(self):
        held = directory.open_state(self.path)
        with mock.patch.object(threading, 'Event', autospec=True) as event:
            event.return_value.wait.side_effect = lambda seconds: held.close()
            directory.open_state(self.path, 60).close()
        event.return_value.wait.assert_called_once_with(mock.ANY)

    def test_does_not_wait_for_ever(self):
        held = directory.open_state(self.path)
        self.addCleanup(held.close)
        self.assertRaises(
            directory.InUse, directory.open_state, self.path, 0.01
        )


class TestRestoreAll(base.BaseTestCase):
    def test_restores_what_runs_and_forgets_the_others(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        held = directory.open_state(folder.name)
        self.addCleanup(held.close)
        hypervisor = fakes.FakeHypervisor()
        backend = fakes.FakeBackend(CFS)
        enforcing = enforcer.Enforcer(
            {CFS: backend},
            lambda name: backend.supports(),
            admission.NoCapacity(),
            held.journal,
        )
        for number in (1, 2):
            one = fakes.domain(number)
            enforcing.hold(
                one, reservation.Reservation(6_000, 20_000, backend=CFS)
            )
            hypervisor.running[one.uuid] = one
        untouched = fakes.domain(3)
        hypervisor.running[untouched.uuid] = untouched
        del hypervisor.running[fakes.domain(2).uuid]
        self.assertEqual(
            (1, 1, ()),
            directory.restore_all(enforcing, hypervisor, held.journal),
        )
        self.assertEqual({201}, set(backend.held))
        self.assertEqual([], held.journal.touched())
        self.assertEqual(
            (0, 0, ()),
            directory.restore_all(enforcing, hypervisor, held.journal),
        )

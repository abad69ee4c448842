# SPDX-License-Identifier: Apache-2.0
"""An agent that has lost its journal takes over what the kernel has."""

import dataclasses
import os
import tempfile

from oslotest import base as test_base

from vsched_agent.enforcement import base
from vsched_agent.reservations import admission
from vsched_agent.reservations import enforcer
from vsched_agent.state import directory
from vsched_agent.state import store
from vsched_agent.tests import fakes
from vsched_agent.tests import passes
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import reservation

CAPPED = reservation.Mode.CAPPED
HELD = base.Enforced(4_000_000, 20_000_000, CAPPED)


class LostRecordsCase(passes.TestCase):
    def lose(self, damaged=True):
        """Have an agent start after its journal was lost."""
        self.journal.close()
        if damaged:
            with open(self.path, 'wb') as file:
                file.write(b'garbage ' * 1000)
        else:
            os.unlink(self.path)
        self.open_journal()
        self.make()


class TestDamaged(LostRecordsCase):
    def test_overridden_ones_keep_what_they_have(self):
        self.run_(fakes.domain(1, cpu_runtime_us=4_000))
        self.reconciler.set_overrides(
            collector_replies.Overrides(
                1,
                (
                    collector_replies.Override(
                        fakes.domain(1).uuid, 1, 8_000, 20_000, 'capped'
                    ),
                ),
            )
        )
        self.run_()
        applied = len(self.deadline.applied)
        self.lose()
        reports = self.run_()
        self.assertIn(errors.Code.JOURNAL_REBUILT, self.codes(reports))
        self.assertEqual(1, len(self.asked))
        # The flavor says 4 ms; the override is not fetched yet.
        self.assertEqual(8_000, self.deadline.held[101].runtime_us)
        for _ in range(3):
            self.run_()
        self.assertEqual(applied, len(self.deadline.applied))
        self.reconciler.set_overrides(
            collector_replies.Overrides(
                1,
                (
                    collector_replies.Override(
                        fakes.domain(1).uuid, 1, 8_000, 20_000, 'capped'
                    ),
                ),
            )
        )
        self.assertEqual(
            [('1', messages.State.APPLIED)], self.states(self.run_())
        )
        self.assertEqual(8_000, self.deadline.held[101].runtime_us)

    def test_without_a_reservation_the_defaults_come_back(self):
        one = fakes.domain(1)
        self.hypervisor.running[one.uuid] = one
        self.deadline.held[101] = HELD
        self.lose()
        self.run_()
        self.assertIn(101, self.deadline.held)
        self.assertEqual(
            {101: store.Prior(100, {})},
            self.journal.priors(one.uuid, passes.DEADLINE),
        )
        self.reconciler.set_overrides(collector_replies.Overrides(0))
        self.run_()
        self.assertEqual({}, self.deadline.held)
        self.assertEqual([], self.journal.touched())

    def test_the_definitions_own_quota_stays(self):
        ours, own = (
            fakes.domain(1),
            dataclasses.replace(fakes.domain(2), vcpu_quota=(4_000, 20_000)),
        )
        for one in (ours, own):
            self.hypervisor.running[one.uuid] = one
            self.cfs.held[one.vcpus[0].tid] = HELD
        self.lose()
        self.run_()
        self.reconciler.set_overrides(collector_replies.Overrides(0))
        self.run_()
        self.assertEqual([201], list(self.cfs.held))

    def test_one_that_fails_leaves_the_others(self):
        for number in (1, 2):
            one = fakes.domain(number, cpu_runtime_us=4_000)
            self.hypervisor.running[one.uuid] = one
        read = self.deadline.read

        def fail(targets):
            if any(target.tid == 101 for target in targets):
                raise OSError('the test says so')
            return read(targets)

        self.lose()
        self.deadline.read = fail
        self.run_()
        self.assertIn(201, self.deadline.held)

    def test_while_it_runs(self):
        self.run_(fakes.domain(1, cpu_runtime_us=4_000))
        path = self.journal._storage._path
        self.journal.accept_loss()
        for what in ('wal_checkpoint(TRUNCATE)', 'shrink_memory'):
            self.journal._storage._file.execute('PRAGMA %s' % what)
        with open(path, 'r+b') as file:
            file.write(b'garbage ' * 10_000)
        self.run_()
        reports = self.run_()
        self.assertIn(errors.Code.JOURNAL_REBUILT, self.codes(reports))
        self.assertEqual(4_000, self.deadline.held[101].runtime_us)
        self.assertEqual(
            [(fakes.domain(1).uuid, 'deadline')], self.journal.touched()
        )


class TestMissing(LostRecordsCase):
    def test_deadline_is_taken_over_and_quotas_are_not(self):
        for number in (1, 2):
            one = fakes.domain(number)
            self.hypervisor.running[one.uuid] = one
        self.deadline.held[101] = HELD
        self.cfs.held[201] = HELD
        self.lose(damaged=False)
        reports = self.run_()
        self.assertNotIn(errors.Code.JOURNAL_REBUILT, self.codes(reports))
        self.reconciler.set_overrides(collector_replies.Overrides(0))
        self.run_()
        self.assertEqual({}, self.deadline.held)
        self.assertEqual([201], list(self.cfs.held))


class TestRestore(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.hypervisor = fakes.FakeHypervisor()
        self.deadline = fakes.FakeBackend(passes.DEADLINE)
        for number in (1, 2, 3):
            one = fakes.domain(number)
            self.hypervisor.running[one.uuid] = one
            self.deadline.held[number * 100 + 1] = HELD

    def restore(self):
        held = directory.open_state(self.folder.name)
        self.addCleanup(held.close)
        return directory.restore_all(
            enforcer.Enforcer(
                {passes.DEADLINE: self.deadline},
                lambda name: self.deadline.supports(),
                admission.NoCapacity(),
                held.journal,
            ),
            self.hypervisor,
            held.journal,
        )

    def test_without_records(self):
        with open(
            os.path.join(self.folder.name, 'agent.sqlite'), 'wb'
        ) as file:
            file.write(b'garbage ' * 1000)
        self.assertEqual((3, 0, ()), self.restore())
        self.assertEqual({}, self.deadline.held)

    def test_one_that_fails_leaves_the_others(self):
        restore = self.deadline.restore

        def fail(targets, prior):
            if any(target.tid == 101 for target in targets):
                raise OSError('the test says so')
            restore(targets, prior)

        self.deadline.restore = fail
        found = self.restore()
        self.assertEqual((2, 0), found[:2])
        self.assertIn(fakes.domain(1).uuid, found.problems[0])
        self.assertEqual([101], list(self.deadline.held))

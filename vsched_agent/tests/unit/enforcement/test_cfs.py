# SPDX-License-Identifier: Apache-2.0

import errno
import itertools
import os

from oslotest import base

from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement import cfs
from vsched_agent.host import cgroup
from vsched_agent.privileged import cgroup as privileged
from vsched_agent.tests import assignments
from vsched_agent.tests import backend_suite
from vsched_agent.tests import fake_cgroups
from vsched_agent.tests import in_process
from vsched_lib.contract import errors
from vsched_lib.model import reservation


class CfsCase(base.BaseTestCase):
    version = 1

    def setUp(self):
        super().setUp()
        manager = in_process.entrypoints(privileged.cgroup_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.tree = self.useFixture(fake_cgroups.FakeCgroups(self.version))
        self.writes = []
        real = privileged._write

        def write(path, text):
            self.writes.append((os.path.basename(path), text))
            self.before_write(path, text)
            return real(path, text)

        self.patch(privileged, '_write', write)
        self.now = 0.0
        self.backend = cfs.CfsBackend(
            cgroup.Cgroups(self.tree.root), clock=lambda: self.now
        )
        self.tids = itertools.count(100)

    def before_write(self, path, text):
        pass

    def targets(self, count):
        made = []
        for index in range(count):
            tid = next(self.tids)
            self.tree.group('vm/vcpu%d' % tid, (tid,))
            made.append(enforcement.Target(index, tid))
        return made

    def end(self, target):
        self.tree.gone(target.tid)
        # What is remembered of a place is looked at again in time.
        self.now += 60


class TestVersion1(CfsCase, backend_suite.BackendSuite):
    def test_the_ratio_never_rises_above_either_end(self):
        (target,) = self.targets(1)
        seen = []

        def before_write(path, text):
            folder = os.path.dirname(path)
            seen.append(
                tuple(
                    int(cgroup.read_text(os.path.join(folder, name)))
                    for name in ('cpu.cfs_quota_us', 'cpu.cfs_period_us')
                )
            )

        self.before_write = before_write
        for runtime_us, period_us in (
            (6_000, 20_000),
            (15_000, 50_000),
            (2_000, 10_000),
            (10_000, 100_000),
        ):
            seen.clear()
            self.backend.apply_each(
                [(target, reservation.Reservation(runtime_us, period_us))]
            )
            (quota0, period0), (quota1, period1) = seen
            if quota0 != cfs.NO_QUOTA:
                self.assertLessEqual(
                    quota1 / period1,
                    max(quota0 / period0, runtime_us / period_us),
                )

    def test_a_limit_above_is_named(self):
        self.tree.group('vm', quota='10000')
        (target,) = self.targets(1)

        def before_write(path, text):
            if path.endswith('quota_us') and int(text) > 2_000:
                raise OSError(errno.EINVAL, 'above')

        self.before_write = before_write
        refusal = self.assertRaises(
            errors.Refused,
            self.backend.apply_each,
            [(target, reservation.Reservation(6_000, 20_000))],
        )
        self.assertEqual(errors.Code.KERNEL_REFUSED, refusal.code)
        self.assertEqual(10_000, refusal.figures['parent_quota_us'])
        self.assertEqual({target.tid: None}, self.backend.read([target]))

    def test_no_quotas_in_this_kernel(self):
        os.unlink(
            os.path.join(self.tree.root, self.tree.cpu, 'cpu.cfs_quota_us')
        )
        support = self.backend.supports()
        self.assertFalse(support.usable)
        self.assertIn('CONFIG_CFS_BANDWIDTH', support.reasons[0])

    def test_reading_follows_a_thread_to_its_new_group(self):
        (target,) = self.targets(1)
        self.backend.apply_each(
            [(target, reservation.Reservation(6_000, 20_000))]
        )
        self.backend.read([target])
        self.tree.group('elsewhere', (target.tid,), '1000', '10000')
        self.now += 60
        self.assertEqual(
            1_000, self.backend.read([target])[target.tid].runtime_us
        )


class TestVersion2(CfsCase, backend_suite.BackendSuite):
    version = 2

    def test_one_write_does(self):
        (target,) = self.targets(1)
        self.backend.apply_each(
            [(target, reservation.Reservation(6_000, 20_000))]
        )
        self.assertEqual([('cpu.max', '6000 20000')], self.writes)

    def test_a_group_without_the_controller(self):
        (target,) = self.targets(1)
        os.unlink(
            os.path.join(
                self.tree.root, self.tree.cpu, 'vm/vcpu%d/cpu.max' % target.tid
            )
        )
        refusal = self.assertRaises(
            errors.Refused,
            self.backend.apply_each,
            [(target, reservation.Reservation(6_000, 20_000))],
        )
        self.assertEqual(errors.Code.BACKEND_UNAVAILABLE, refusal.code)
        self.assertIn('subtree_control', refusal.detail)


class TestEither(CfsCase):
    def test_a_quota_is_no_guarantee(self):
        self.assertIn('guarantees nothing', self.backend.supports().reasons[0])
        refusal = self.assertRaises(
            errors.Refused,
            self.backend.apply_each,
            assignments.alike(
                self.targets(1),
                reservation.Reservation(
                    6_000, 20_000, reservation.Mode.WORK_CONSERVING
                ),
            ),
        )
        self.assertEqual(errors.Code.RESERVATION_INVALID, refusal.code)

    def test_a_shared_group_is_left_alone(self):
        self.tree.group('vm/emulator', (7, 8))
        target = enforcement.Target(0, 7)
        refusal = self.assertRaises(
            errors.Refused,
            self.backend.apply_each,
            [(target, reservation.Reservation(6_000, 20_000))],
        )
        self.assertEqual(errors.Code.BACKEND_UNAVAILABLE, refusal.code)
        self.assertEqual({}, self.backend.prior([target]))
        self.backend.restore([target], {})
        self.assertEqual([], self.writes)

    def test_no_cpu_controller(self):
        self.tree.write('proc/self/mountinfo', '')
        self.assertFalse(self.backend.supports().usable)

    def test_without_a_prior_there_is_no_quota(self):
        (target,) = self.targets(1)
        self.backend.apply_each(
            [(target, reservation.Reservation(6_000, 20_000))]
        )
        self.backend.restore([target], {})
        self.assertEqual({target.tid: None}, self.backend.read([target]))

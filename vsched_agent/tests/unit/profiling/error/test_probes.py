# SPDX-License-Identifier: Apache-2.0

"""What runs the VM whose vCPU is a probe."""

import contextlib
from unittest import mock

from oslotest import base

from vsched_agent.profiling.error import probes
from vsched_agent.profiling.guest import vm
from vsched_lib.contract import errors


class TestCalibration(base.BaseTestCase):
    """Without libvirt: which types are tried, and what is said of it."""

    def setUp(self):
        super().setUp()
        self.works = {'kvm', 'qemu'}
        self.tried, self.alive = [], 0
        folder = self.create_tempfiles([('guest', '')])[0]
        self.path = folder
        for target, fake in ((vm, 'RunningDomain'), (probes, '_vcpu_tid')):
            patch = mock.patch.object(
                target,
                fake,
                self.domain if target is vm else lambda spec, run_dir: 7,
            )
            patch.start()
            self.addCleanup(patch.stop)

    @contextlib.contextmanager
    def domain(self, spec, uri, ready_timeout_s):
        self.tried.append(spec.virt_type)
        if spec.virt_type not in self.works:
            raise vm.GuestNotReady('no ready line')
        self.alive += 1
        try:
            yield
        finally:
            self.alive -= 1

    def make(self, virt_type='auto'):
        return probes.Calibration(
            self.path, self.path, 'x:///', '/nowhere', '/nowhere', virt_type
        )

    def use(self, made):
        with made(None) as probe:
            self.assertEqual((7, 1), (probe.tid, self.alive))
        self.assertEqual(0, self.alive)

    def test_kvm_where_it_runs_the_guest(self):
        made = self.make()
        self.use(made)
        self.assertEqual(
            (['kvm'], {'virt_type': 'kvm'}, []),
            (self.tried, made.features, made.notes),
        )

    def test_emulation_where_it_does_not(self):
        self.works = {'qemu'}
        made = self.make()
        self.use(made)
        self.use(made)
        self.assertEqual(['kvm', 'qemu', 'qemu'], self.tried)
        self.assertEqual({'virt_type': 'qemu'}, made.features)
        self.assertEqual(1, len(made.notes))

    def test_as_the_options_say(self):
        for virt_type in ('kvm', 'qemu'):
            self.tried = []
            self.use(self.make(virt_type))
            self.assertEqual([virt_type], self.tried)
        self.works = set()
        with self.assertRaises(errors.Refused), self.make('kvm')(None):
            pass

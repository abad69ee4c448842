# SPDX-License-Identifier: Apache-2.0

"""A host prices I/O with a real VM, network and disk, and leaves nothing."""

import glob
import json
import os
import signal
import socket
import subprocess
import sys
import threading

import fixtures
from oslo_config import cfg
from oslotest import base

from vsched_agent import conf as agent_conf
from vsched_agent import privileged
from vsched_agent.profiling import checkpoint
from vsched_agent.profiling.overhead import loads
from vsched_agent.profiling.overhead import traffic
from vsched_agent.profiling import session
from vsched_agent.tests import fixtures as agent_fixtures
from vsched_agent.tests.functional import agent_guests
from vsched_lib.model import overhead

#: Only a hang takes longer, in seconds.
PATIENCE_S = 120
LIMIT_S = 1500
SHORT = loads.Plan(
    net_rates=(400,),
    net_bursts=(1, 8),
    net_sizes=(200,),
    disk_rates=(100,),
    disk_bursts=(1,),
    disk_sizes=(4096,),
    window_s=1.0,
    idle=1,
)


class OverheadCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        agent_fixtures.require_libvirt(self)
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.addCleanup(self.as_before)

    def as_before(self):
        agent_fixtures.await_nothing_left(self, self.leftovers)

    def leftovers(self):
        """Return bridges, VMs, peers and disks that are left."""
        found = [
            name
            for _, name in socket.if_nameindex()
            if name.startswith('vsched-')
        ]
        found += glob.glob(self.folder + '/**/*.img', recursive=True)
        for path in glob.glob('/proc/[0-9]*/cmdline'):
            try:
                with open(path, 'rb') as file:
                    line = file.read()
            except OSError:
                continue
            # Whole words, for a shell may have them in a longer one. Tests of
            # another checkout may run such a program as well.
            found += [
                path
                for word in line.split(b'\0')
                if word.startswith(b'guest=vsched-calibration-')
                or word == os.fsencode(os.path.abspath(traffic.__file__))
            ]
        return found


class TestOverhead(OverheadCase):
    def setUp(self):
        super().setUp()
        conf = cfg.ConfigOpts()
        agent_conf.register_opts(conf)
        conf([], default_config_files=[], default_config_dirs=[])
        conf.set_override('state_path', self.folder, 'agent')
        conf.set_override('guest_virt_type', 'qemu', 'profiling')
        privileged.use(conf)
        self.scene = session.OverheadMeasurement(conf)
        self.addCleanup(self.scene.close)
        self.scene.plan = SHORT

    def test_a_run(self):
        kept = checkpoint.RunFile(
            os.path.join(self.folder, 'profiling', 'run'), {}, False
        )
        self.addCleanup(kept.close)
        stolen_s = agent_guests.stolen_s()
        found = self.scene.run(
            kept, threading.Event(), lambda ppm, doing: None
        ).run(1)
        stolen_s = agent_guests.stolen_s() - stolen_s
        self.assertTrue(found.complete)
        self.assertEqual(
            set(overhead.TERMS), {price.term for price in found.prices}
        )
        self.assertIn(found.features['virt_type'], ('kvm', 'qemu'))
        for point in found.points:
            term = point.experiment.replace('-', '_')
            if point.experiment == loads.Experiment.IDLE:
                self.assertLess(point.net_rx + point.net_tx, 50)
                continue
            # A busy machine may slow a load down, nothing makes more of it.
            moved = getattr(point, term)
            wanted = point.rate * point.interval_us / 1e6
            # What the machine under this one takes makes windows longer, and
            # is made up for later.
            stolen = point.rate * stolen_s
            self.assertGreater(moved, 0.3 * (wanted - stolen), point)
            self.assertLess(moved, 1.7 * wanted + stolen, point)
            self.assertGreater(point.direct_us, 0)
            self.assertGreater(point.wakeups, 0)
        self.assertGreater(
            sum(
                price.cost_ns
                for price in found.prices
                if price.term != overhead.IDLE
            ),
            0,
        )


class TestCommand(OverheadCase):
    def setUp(self):
        super().setUp()
        # Longer than a test may take by default: each boots a VM twice.
        self.useFixture(fixtures.Timeout(LIMIT_S, gentle=True))
        self.config = os.path.join(self.folder, 'vsched.conf')
        with open(self.config, 'w', encoding='utf-8') as file:
            file.write(
                '[agent]\nstate_path = %s/state\n'
                '[profiling]\nguest_virt_type = qemu\n' % self.folder
            )

    def start(self, *words):
        return subprocess.Popen(
            [
                sys.executable,
                '-W',
                'ignore',
                '-m',
                'vsched_agent.cmd.agent',
                '--config-file',
                self.config,
                'profile',
                'overhead',
                '--quick',
                '--json',
                *words,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def until_it_measures(self, running):
        for line in running.stdout:
            if json.loads(line)['detail'].startswith('load 2 of'):
                return
        self.fail('it ended')

    def test_it_is_stopped_and_goes_on(self):
        running = self.start()
        self.until_it_measures(running)
        running.terminate()
        self.assertEqual(3, running.wait(PATIENCE_S))
        running.stdout.close()
        self.as_before()
        again = self.start('--resume')
        details = []
        for line in again.stdout:
            details.append(json.loads(line)['detail'])
            if len(details) == 2:
                break
        again.terminate()
        again.wait(PATIENCE_S)
        again.stdout.close()
        self.assertFalse(details[1].startswith('load 1 of'), details)

    def test_killed_it_takes_all_along(self):
        running = self.start()
        self.until_it_measures(running)
        running.kill()
        running.wait()
        running.stdout.close()
        self.as_before()

    def test_what_its_killed_helper_leaves_goes_at_the_next_run(self):
        running = self.start()
        self.until_it_measures(running)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        running.stdout.close()
        again = self.start()
        self.until_it_measures(again)
        self.assertEqual(
            1,
            len(
                [
                    name
                    for _, name in socket.if_nameindex()
                    if name.startswith('vsched-b')
                ]
            ),
        )
        again.terminate()
        again.wait(PATIENCE_S)
        again.stdout.close()

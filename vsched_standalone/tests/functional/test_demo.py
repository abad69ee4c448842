# SPDX-License-Identifier: Apache-2.0

"""``vsched-demo`` as a process, over its REST API."""

import os
import signal
import subprocess
import sys
import time

import fixtures
from oslotest import base
import requests

PATIENCE_S = 120


class TestDemo(base.BaseTestCase):
    def start(self, *words):
        process = subprocess.Popen(
            [
                sys.executable,
                '-W',
                'ignore',
                '-m',
                'vsched_standalone.cmd.demo',
                '--hosts',
                '3',
                '--interval',
                '0.5',
                *words,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, 'TMPDIR': self.folder},
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path

    def url(self, process):
        line = process.stdout.readline()
        self.assertIn('(simulated hosts)', line)
        self.assertIn('3 hosts report', process.stdout.readline())
        return line.split()[1]

    def get(self, url):
        reply = requests.get(url, timeout=PATIENCE_S)
        reply.raise_for_status()
        return reply.json()

    def await_(self, there):
        give_up = time.monotonic() + PATIENCE_S
        while not (found := there()):
            self.assertLess(time.monotonic(), give_up)
            time.sleep(0.2)
        return found

    def test_a_change_is_applied_and_nothing_stays(self):
        process = self.start('--port', '0')
        url = self.url(process)
        self.assertTrue(url.startswith('http://127.0.0.1:'), url)
        self.assertEqual(
            ['demo-01', 'demo-02', 'demo-03'],
            [one['name'] for one in self.get(url + '/v1/hosts')['hosts']],
        )
        found = self.get(url + '/v1/reservations')['reservations']
        uuid = next(
            one['instance_uuid'] for one in found if one['state'] == 'applied'
        )
        requests.patch(
            url + '/v1/reservations/' + uuid,
            json={'runtime_us': 1_000, 'period_us': 10_000},
            timeout=PATIENCE_S,
        ).raise_for_status()

        def applied():
            one = self.get(url + '/v1/reservations/' + uuid)['reservation']
            return one['state'] == 'applied' and one['enforced']

        enforced = self.await_(applied)
        self.assertEqual(1_000, enforced['runtime_us'])
        self.await_(
            lambda: (
                10
                < len(
                    self.get(url + '/v1/usage?instance_uuid=' + uuid)['usage']
                )
            )
        )
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(PATIENCE_S))
        self.assertEqual([], os.listdir(self.folder))

    def test_equal_seeds_and_a_database_that_is_kept(self):
        kept = os.path.join(self.folder, 'kept')
        seen = []
        for words in (
            ('--state-path', kept),
            ('--state-path', kept),
            ('--seed', '1'),
            ('--seed', '2'),
        ):
            process = self.start('--port', '0', *words)
            url = self.url(process)
            seen.append(
                {
                    (one['instance_uuid'], one['instance_name'])
                    for one in self.get(url + '/v1/reservations')[
                        'reservations'
                    ]
                }
            )
            process.terminate()
            self.assertEqual(0, process.wait(PATIENCE_S))
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], seen[2])
        self.assertNotEqual(seen[0], seen[3])

    def test_a_port_in_use_is_named(self):
        process = self.start('--port', '0')
        port = self.url(process).rpartition(':')[2]
        other = subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                '-m',
                'vsched_standalone.cmd.demo',
                '--port',
                port,
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        self.assertEqual(1, other.returncode)
        self.assertIn('127.0.0.1:%s' % port, other.stderr)

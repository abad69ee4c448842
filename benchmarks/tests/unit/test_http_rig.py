# SPDX-License-Identifier: Apache-2.0

import json
import subprocess
from unittest import mock

from oslotest import base

from benchmarks import http_client
from benchmarks import http_rig


class ClientTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.client = http_rig.Client('br0')
        self.sent = []
        self.answers = []
        patch = mock.patch.multiple(
            self.client,
            send=self.sent.append,
            receive=lambda: self.answers.pop(0),
        )
        patch.start()
        self.addCleanup(patch.stop)

    def test_task_goes_through_json(self):
        task = http_client.Task('198.18.64.2', ['/a'], 3, pause_s=(0.1, 0.2))
        self.answers = [[[0, 1.5, 200], [0, 5000.0, 0]]]
        self.assertEqual(
            [(0, 1.5, 200), (0, 5000.0, 0)], self.client.run(task)
        )
        sent = http_client.Task(**json.loads(self.sent[0]))
        self.assertEqual(0.1, sent.pause_s[0])
        self.assertEqual((['/a'], 3), (sent.paths, sent.requests))

    def test_an_answer_that_is_no_page_fails_the_run(self):
        self.answers = [[[0, 1.5, 200], [0, 1.0, 404], [0, 1.0, 500]]]
        self.assertRaisesRegex(
            RuntimeError,
            'status 404, 500',
            self.client.run,
            http_client.Task('198.18.64.2', ['/a'], 3),
        )

    def test_load_ends_with_its_context(self):
        self.answers = [[[0, 1.0, 200]]]
        with self.client.running(
            http_client.Task('198.18.64.3', ['/a'])
        ) as found:
            self.assertEqual([], found)
            self.assertEqual(1, len(self.sent))
        self.assertEqual([(0, 1.0, 200)], found)
        self.assertEqual('', self.sent[1])

    def test_server_that_comes_up(self):
        self.answers = [[[0, 5000.0, 0]], [[0, 3.0, 502]], [[0, 3.0, 200]]]
        with mock.patch.object(
            http_rig.agent_guests, 'pause', autospec=True
        ) as pause:
            self.client.await_page('198.18.64.2', '/a')
        self.assertEqual(2, pause.call_count)

    def test_server_that_stays_down(self):
        self.answers = [[[0, 3.0, 502]]]
        with mock.patch.object(http_rig, 'PATIENCE_S', -1.0):
            self.assertRaisesRegex(
                RuntimeError,
                'status 502',
                self.client.await_page,
                '198.18.64.2',
                '/a',
            )

    def test_its_program_ends_without_its_parent(self):
        words = list(self.client.command())
        words[-1] = words[-1].replace('.main(', '.main(0 * ')
        done = subprocess.run(words, check=True, capture_output=True)
        self.assertEqual((b'', b''), (done.stdout, done.stderr))

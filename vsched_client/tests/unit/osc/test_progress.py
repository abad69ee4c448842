# SPDX-License-Identifier: Apache-2.0

"""How far jobs have got, on a terminal and elsewhere."""

import io

from oslotest import base

from vsched_client.osc import progress
from vsched_client.tests import shell


def job(progress_ppm, state='running', detail='3 of 12 points'):
    """Return a job."""
    return {'progress_ppm': progress_ppm, 'state': state, 'detail': detail}


class ProgressTestCase(base.BaseTestCase):
    def show(self, stream, *jobs):
        now = [0.0]
        bar = progress.Progress(stream, lambda: now[0])
        for one in jobs:
            bar.show(one)
            now[0] += 30
        bar.close()
        return stream.getvalue()

    def test_a_bar(self):
        text = self.show(
            shell.Terminal(), job(0), job(250_000), job(1_000_000, 'done')
        )
        first, second, third = text.split('\r\x1b[K')[1:]
        self.assertIn('[....................] running   0 %', first)
        self.assertIn('[#####...............] running  25 %', second)
        self.assertIn('3 of 12 points, about 1 min 30 s left', second)
        self.assertIn('[####################] done 100 %', third)
        self.assertTrue(third.endswith('\n'))

    def test_a_bar_is_never_wrapped(self):
        text = self.show(shell.Terminal(), job(0, detail='x' * 1000))
        self.assertLess(len(text), 1000)

    def test_lines(self):
        text = self.show(
            io.StringIO(),
            job(0, 'queued', ''),
            job(0),
            job(50_000),
            job(120_000),
            job(1_000_000, 'done'),
        )
        self.assertEqual(
            ['queued', 'running', 'running', 'done'],
            [line.split()[0] for line in text.splitlines()],
        )
        self.assertNotIn('\x1b', text)

    def test_what_an_agent_reports_is_data(self):
        for stream in (io.StringIO(), shell.Terminal()):
            text = self.show(stream, job(2**40, detail='\x1b[2J\n'))
            self.assertIn(r'\x1b[2J\n', text)
            self.assertIn('100 %', text)

    def test_another_attempt_begins_at_nothing(self):
        text = self.show(shell.Terminal(), job(500_000), job(0), job(500_000))
        self.assertIn('about 30 s left', text.rpartition('\r')[2])

    def test_nothing_was_shown(self):
        self.assertEqual('', self.show(shell.Terminal()))

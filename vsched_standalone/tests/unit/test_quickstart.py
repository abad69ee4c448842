# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import sys
from unittest import mock

from oslotest import base

from vsched_standalone.cmd import quickstart
from vsched_standalone.quickstart import demonstration
from vsched_standalone.quickstart import table
from vsched_standalone.quickstart import windows


class TestWindows(base.BaseTestCase):
    def windows(self, *shares):
        return [
            windows.Window(float(at), share)
            for at, share in enumerate(shares, 1)
        ]

    def test_percentile_is_the_nearest_rank(self):
        self.assertEqual(5, windows.percentile([1, 5, 3], 0.99))
        self.assertEqual(1, windows.percentile([1, 5, 3], 0.01))
        self.assertEqual(99, windows.percentile(range(1, 101), 0.99))

    def test_windows_with_time_from_before_are_left_out(self):
        found = windows.summarise(
            self.windows(0.9, 0.7, 0.6, 0.624, 0.576), 0.6, changed_at=0
        )
        self.assertEqual(2, found.windows)
        self.assertAlmostEqual(0.6, found.got_mean)
        self.assertEqual(3, found.settle_s)

    def test_a_promise_that_is_not_kept_never_settles(self):
        found = windows.summarise(
            self.windows(0.6, 0.6, 0.6, 0.6, 0.3), 0.6, changed_at=0
        )
        self.assertIsNone(found.settle_s)

    def test_nothing_to_say_without_windows(self):
        self.assertIsNone(windows.summarise(self.windows(1, 1), 0.6, 0))


class FakeApi:
    """VMs whose usage is told look by look."""

    def __init__(self, **shares):
        self.shares = shares

    def windows(self, uuid, since):
        left = self.shares[uuid]
        got = left.pop(0) if len(left) > 1 else left[0]
        return [] if got is None else [windows.Window(1.0, got)]


class TestLoad(base.BaseTestCase):
    def run_with(self, **shares):
        self.waits = []

        def wait(seconds):
            self.waits.append(seconds)
            return len(self.waits) > 10

        return demonstration.Demonstration(
            FakeApi(**shares),
            'a',
            {'a': 'vm-a', 'b': 'vm-b'},
            table.Table(io.StringIO()),
            wait,
        ).run(1.0, ())

    def test_nothing_is_shown_before_all_burn(self):
        self.assertEqual([], self.run_with(a=[0.6], b=[None, 0.0, 0.3]))
        self.assertEqual([0.2, 0.2, 0], self.waits)

    def test_one_that_never_burns(self):
        self.patch(demonstration.Demonstration, 'LOAD_S', -1.0)
        error = self.assertRaises(
            demonstration.NoLoad, self.run_with, a=[0.6], b=[0.01]
        )
        self.assertIn('vm-b', str(error))

    def test_over_before_all_burn(self):
        self.assertEqual([], self.run_with(a=[None], b=[None]))
        self.assertEqual(11, len(self.waits))


class TestTable(base.BaseTestCase):
    rows = (
        table.Row('a', 0.6, 0.594, 'deadline', 'applied'),
        table.Row('b', None, 0.3, '-', '-'),
        table.Row('c', 0.6, None, 'cfs', 'pending'),
    )

    def test_rows(self):
        self.assertIn('-1.0 %', str(self.rows[0]))
        self.assertIn('0.300', str(self.rows[1]))
        self.assertNotIn('%', str(self.rows[1]))
        self.assertNotIn('%', str(self.rows[2]))

    def test_it_does_not_flood_a_log(self):
        out = io.StringIO()
        shown = table.Table(out, every=5)
        for _ in range(10):
            shown.draw('going', self.rows)
        self.assertEqual(2, out.getvalue().count('going'))
        self.assertNotIn('\x1b', out.getvalue())


class TestCommand(base.BaseTestCase):
    """The command without VMs and without services."""

    URL = 'http://127.0.0.1:4321'

    def run_with(self, *options):
        """Return the exit status, and what is printed when it measures."""
        shown = io.StringIO()
        self.patch(sys, 'stdout', shown)
        self.patch(quickstart.signal, 'signal', mock.Mock())
        self.patch(quickstart.logging, 'setup', mock.Mock())
        self.patch(
            quickstart.vm,
            'RunningDomain',
            lambda *_, **__: contextlib.nullcontext(),
        )
        self.standalone = mock.Mock(url=self.URL)
        self.patch(
            quickstart.service, 'Standalone', lambda conf: self.standalone
        )
        printed = []

        def measure(*_):
            printed.append(shown.getvalue())
            return []

        self.patch(quickstart.demonstration.Demonstration, 'run', measure)
        status = quickstart.main(['--guest-dir', '/nowhere', *options])
        return status, *printed, shown.getvalue()

    def test_the_page_is_named_before_anything_is_measured(self):
        status, before, output = self.run_with()
        self.assertEqual(0, status)
        self.assertIn('page: %s/ui' % self.URL, before.splitlines())
        # Without --keep, nothing is there any more afterwards.
        self.assertNotIn('running until', output)
        self.standalone.stop.assert_called_once_with()
        self.assertTrue(
            output.endswith('everything that was started is stopped\n')
        )

# SPDX-License-Identifier: Apache-2.0

"""Which processes of a collector run. Real ones are in functional tests."""

import errno
import signal
import types
from unittest import mock

from oslotest import base as test_base

from vsched_api.collector import processes


class TestProcesses(test_base.BaseTestCase):
    """A fork that succeeds or fails as the test has it."""

    def setUp(self):
        super().setUp()
        self.reload = mock.Mock(return_value=True)
        self.processes = processes.Processes(2, mock.Mock(), self.reload)
        self.fork = self.processes._fork = mock.Mock()
        self.fork.Process.side_effect = self.make
        self.made = []
        self.awaited = []
        self.kill = mock.Mock()
        self.now_s = 100.0
        for name, one in (
            ('os', types.SimpleNamespace(kill=self.kill)),
            ('time', types.SimpleNamespace(monotonic=lambda: self.now_s)),
            (
                'signal',
                types.SimpleNamespace(
                    **vars(signal)
                    | {
                        'pthread_sigmask': mock.Mock(),
                        'sigtimedwait': self.wait,
                    }
                ),
            ),
        ):
            # Names of the module, so that nothing changes for other threads.
            patch = mock.patch.object(processes, name, one)
            self.addCleanup(patch.stop)
            patch.start()

    def make(self, target, args):
        process = mock.Mock(pid=1_000 + len(self.made), exitcode=None)
        self.made.append((args[0], process))
        return process

    def wait(self, signals, timeout_s):
        """Do what the test has planned, and let the time pass."""
        act = self.awaited.pop(0)
        number = act()
        if number is None:
            self.now_s += timeout_s
            return None
        return mock.Mock(si_signo=number)

    def run_with(self, *acts):
        self.awaited[:] = acts
        return self.processes.run()

    def ended(self, place, exit_code):
        def act():
            self.made[place][1].exitcode = exit_code
            return signal.SIGCHLD

        return act

    def test_all_run_until_it_is_asked_to_end(self):
        self.assertEqual(0, self.run_with(lambda: signal.SIGTERM))
        self.assertEqual([0, 1], [number for number, _ in self.made])
        self.assertEqual(
            [mock.call(1_000, signal.SIGTERM), mock.call(1_001, 15)],
            self.kill.mock_calls,
        )
        for _, process in self.made:
            process.join.assert_called_once_with()

    def test_one_that_ends_is_started_again(self):
        for exit_code in (0, 2, -signal.SIGKILL):
            self.made.clear()
            self.processes._due_s = {0: 0.0, 1: 0.0}
            self.run_with(
                self.ended(1, exit_code), lambda: None, lambda: signal.SIGINT
            )
            self.assertEqual([0, 1, 1], [number for number, _ in self.made])

    def test_it_is_not_started_at_once(self):
        self.run_with(self.ended(0, 2), lambda: signal.SIGTERM)
        self.assertEqual(2, len(self.made))

    def test_one_that_cannot_start_ends_all(self):
        self.assertEqual(
            processes.UNUSABLE,
            self.run_with(self.ended(0, processes.UNUSABLE)),
        )
        self.kill.assert_called_once_with(1_001, signal.SIGTERM)

    def test_a_fork_that_fails_is_tried_again(self):
        self.fork.Process.side_effect = [
            mock.Mock(
                **{'start.side_effect': OSError(errno.EAGAIN, 'no memory')}
            ),
            self.make(None, (1,)),
            self.make(None, (0,)),
        ]
        self.run_with(lambda: None, lambda: signal.SIGTERM)
        self.assertEqual(3, self.fork.Process.call_count)
        self.assertEqual(100.0 + processes.RESTART_S, self.now_s)

    def test_they_read_their_options_again(self):
        self.run_with(lambda: signal.SIGHUP, lambda: signal.SIGTERM)
        self.assertEqual(
            [signal.SIGHUP] * 2,
            [call.args[1] for call in self.kill.mock_calls[:2]],
        )

    def test_options_with_an_error_are_not_passed_on(self):
        self.reload.return_value = False
        self.run_with(lambda: signal.SIGHUP, lambda: signal.SIGTERM)
        self.assertNotIn(
            signal.SIGHUP, [call.args[1] for call in self.kill.mock_calls]
        )

# SPDX-License-Identifier: Apache-2.0

"""The collector as operators run it: processes with options in a file."""

import os
import signal
import socket
import sys
import time


from vsched_api.operations import host_keys
from vsched_api.operations import hosts
from vsched_api.tests import base
from vsched_api.tests.functional import process_case
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.tests import bus_keys


class TestCollector(process_case.Process):
    """vsched-collector."""

    def run_collector(self):
        return self.start(
            sys.executable,
            '-W',
            'ignore',
            '-m',
            'vsched_api.cmd.collector',
            '--config-file',
            self.options,
        )

    def children(self, process):
        with open(
            '/proc/%d/task/%d/children' % (process.pid, process.pid)
        ) as f:
            return [int(one) for one in f.read().split()]

    def test_it_has_processes_for_reports_and_one_for_tasks(self):
        process = self.run_collector()
        said = self.read_until(process, 'takes reports')
        said += self.read_until(process, 'takes reports')
        self.assertEqual(3, len(self.children(process)))
        said += self.end(process)
        self.assertEqual(2, said.count('takes reports'), said)
        self.assertEqual(3, said.count(' stops\n'), said)

    def test_a_process_that_is_killed_is_started_again(self):
        process = self.run_collector()
        for _ in range(2):
            self.read_until(process, 'takes reports')
        for pid in self.children(process):
            os.kill(pid, signal.SIGKILL)
        said = ''
        # Each is noticed, and started again, by itself.
        while (
            said.count('ended (by signal 9)') < 3
            or said.count('takes reports') < 2
        ):
            said += self.read_until(process, '\n')
        self.assertFalse(self.report().duplicate)
        until = time.monotonic() + process_case.PATIENCE_S
        while len(self.children(process)) != 3:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.1)
        said += self.end(process)
        self.assertEqual(3, said.count('ended (by signal 9)'), said)

    def test_its_processes_end_when_it_is_killed(self):
        process = self.run_collector()
        for _ in range(2):
            self.read_until(process, 'takes reports')
        process.kill()
        # Until the last one has closed its output.
        said = process.communicate(timeout=process_case.PATIENCE_S)[0]
        self.assertEqual(3, said.count(' stops\n'), said)

    def test_it_does_not_run_without_one_of_its_processes(self):
        with socket.create_server(('127.0.0.1', 0)) as taken:
            with open(self.options, 'a') as file:
                file.write(
                    '[collector]\nmetrics_bind_port = %d\n'
                    # That of the last of them.
                    % (taken.getsockname()[1] - 2)
                )
            process = self.run_collector()
            said = process.communicate(timeout=process_case.PATIENCE_S)[0]
        self.assertEqual(1, process.returncode)
        self.assertIn('does not start: metrics cannot be served', said)
        self.assertNotIn('Traceback', said)

    def test_it_stores_reports_until_it_is_asked_to_end(self):
        process = self.run_collector()
        said = self.read_until(process, 'takes reports')
        self.assertFalse(self.report().duplicate)
        said += self.end(process)
        self.assertIn('stops', said)
        self.assertNotIn('Traceback', said)
        self.assertNotIn('guest:guest', said)
        self.assertEqual(
            1, hosts.get(self.database, base.HOST, 0, 1).last_batch
        )

    def test_it_finishes_when_it_is_interrupted(self):
        process = self.run_collector()
        self.read_until(process, 'takes reports')
        said = self.end(process, signal.SIGINT)
        self.assertIn('stops', said)
        self.assertNotIn('Traceback', said)

    def test_it_reads_its_options_again(self):
        process = self.run_collector()
        said = self.read_until(process, 'takes reports')
        with open(self.options) as file:
            text = file.read()
        for more, word in (
            ('', 'was read again'),
            ('[collector\n', 'stays as it was'),
            ('[collector]\npurge_chunk_rows = -1\n', 'stays as it was'),
            ('[collector]\npurge_chunk_rows = 77\n', 'was read again'),
        ):
            with open(self.options, 'w') as file:
                file.write(
                    text.replace('[DEFAULT]\n', '[DEFAULT]\ndebug = true\n')
                    + more
                )
            process.send_signal(signal.SIGHUP)
            said += self.read_until(process, word)
            if word == 'was read again':
                # The main process has read it, and three more do.
                for _ in range(3):
                    said += self.read_until(process, word)
        # It serves as before, and says more.
        self.report()
        said += self.read_until(process, 'batch 1 stored')
        self.end(process)
        self.assertNotIn('Traceback', said)

    def report(self):
        transport = rpc.get_transport(self.conf, self.bus)
        self.addCleanup(transport.cleanup)
        host_keys.issue(self.database, base.HOST, base.NOW)
        return collector_rpc.CollectorClient(
            transport, process_case.PATIENCE_S, bus_keys.signer(base.HOST)
        ).report(messages.Report(base.HOST, 1, 1_750_000_000.0))

    def test_it_can_be_asked_to_end_while_its_broker_is_away(self):
        self.options = self.write_options('rabbit://127.0.0.1:1')
        process = self.run_collector()
        self.read_until(process, 'Connection refused')
        self.end(process)

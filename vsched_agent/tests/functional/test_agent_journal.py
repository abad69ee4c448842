# SPDX-License-Identifier: Apache-2.0
"""A journal that is damaged, or on a disk that is full or read-only."""

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

from testtools import content

from vsched_agent.state import store
from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import errors

Code = errors.Code
HELD = [(4_000, 20_000)]
MORE = [(6_000, 20_000)]

#: Mounts $2 on the folder $1 as $3 says, and runs the rest there.
_MOUNTED = 'mount $3 $2 "$1" || exit 99; shift 3; exec "$@"'


class JournalCase(agent_case.AgentCase):
    GUESTS = {
        'reserved': {
            'load': 'burn',
            'vcpus': 1,
            'extra_specs': {'vsched:cpu_runtime_us': '4000'},
        },
        'plain': {'load': 'burn', 'vcpus': 1},
    }

    def setUp(self):
        super().setUp()
        self.reserved, self.plain = (
            self.vms[name] for name in ('reserved', 'plain')
        )
        self.state_path = self.agent.conf.agent.state_path
        self.path = os.path.join(self.state_path, 'agent.sqlite')

    def eventually(self, look, what, patience_s=120.0):
        give_up = time.monotonic() + patience_s
        while not look():
            if time.monotonic() > give_up:
                self.fail('never came: %s' % what)
            agent_guests.pause(0.05)


class TestDamaged(JournalCase):
    def test_taken_over_without_a_gap(self):
        mark = self.override(self.reserved, 6_000)
        self.agent.await_said(self.reserved.uuid, mark, source='override')
        self.assertEqual(MORE, self.reserved.held())
        self.agent.stop()
        with open(self.path, 'r+b') as file:
            file.write(b'garbage ' * 4096)
        gaps, end = [], threading.Event()

        def watch():
            while not end.wait(0.002):
                held = self.reserved.held()
                if held != MORE:
                    gaps.append(held)

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            mark = self.collector.mark()
            self.agent.start()
            self.agent.await_event(Code.JOURNAL_REBUILT, since=mark)
            said = self.agent.await_said(
                self.reserved.uuid, mark, source='override'
            )
            self.assertEqual(6_000, said.enforced_runtime_us)
            self.agent.await_passes(2)
        finally:
            end.set()
            watching.join()
        self.assertEqual([], gaps)
        self.assertNotEqual([], glob.glob(self.path + '.corrupt-*'))
        self.end_override(self.reserved)
        self.eventually(lambda: self.reserved.held() == HELD, 'the flavor')

    def test_restore_gives_the_defaults_back(self):
        self.agent.await_said(self.reserved.uuid)
        self.agent.stop()
        with open(self.path, 'r+b') as file:
            file.write(b'garbage ' * 4096)
        found = subprocess.run(
            [*self.agent.command, 'restore'],
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual(0, found.returncode, found.stderr)
        self.assertEqual([None], self.reserved.held())
        self.agent.start()
        self.eventually(
            lambda: self.reserved.held() == HELD, 'the reservation'
        )

    def test_a_batch_that_cannot_be_read(self):
        self.agent.stop()
        with contextlib.closing(store.Journal(self.path)) as book:
            book._storage.run(
                lambda db: db.execute(
                    'INSERT OR REPLACE INTO outbox VALUES (1, \'{"host": '
                    "1e999')"
                )
            )
        mark = self.collector.mark()
        self.agent.start()
        self.agent.await_event(Code.JOURNAL_RECORD_UNREADABLE, since=mark)
        self.agent.await_passes(2)

    def test_a_newer_one_is_refused_with_both_versions(self):
        self.agent.stop()
        self.addCleanup(self.agent.start)
        copy = self.path + '.kept'
        shutil.copy(self.path, copy)
        self.addCleanup(os.replace, copy, self.path)
        with contextlib.closing(store.Journal(self.path)) as book:
            book._storage._file.execute('PRAGMA user_version = 99')
        for command in ('run', 'restore'):
            found = subprocess.run(
                [*self.agent.command, command],
                check=False,
                capture_output=True,
                text=True,
                timeout=300,
            )
            self.assertEqual(1, found.returncode)
            self.assertIn('schema version 99', found.stderr)
            self.assertNotIn('Traceback', found.stderr)


class TestDisk(JournalCase):
    """In a mount namespace of the agent's own."""

    def run_mounted(self, source, options):
        """Run an agent with something mounted on its folder."""
        self.agent.stop()
        self.addCleanup(self.agent.start)
        log = open(os.path.join(self.state_path, '..', 'log'), 'w+b')
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [
                'unshare',
                '-m',
                'sh',
                '-c',
                _MOUNTED,
                'sh',
                self.state_path,
                source,
                options,
                sys.executable,
                '-m',
                'vsched_agent.cmd.agent',
                '--config-file',
                self.agent.config_file,
                'run',
            ],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self.addCleanup(process.wait)
        self.addCleanup(self.end, process)
        self.log = log.name
        self.addDetail('agent', content.content_from_file(log.name))
        return process

    def end(self, process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def inside(self, process, *command):
        """Run a command where the agent is."""
        return subprocess.run(
            ['nsenter', '-t', str(process.pid), '-m', *command],
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def logged(self, text):
        with open(self.log, encoding='utf-8', errors='replace') as file:
            return file.read().count(text)

    def assert_enforces(self):
        self.plain.set_extra_specs({'cpu_runtime_us': 4_000})
        self.addCleanup(self.plain.set_extra_specs, {})
        self.eventually(
            lambda: self.plain.held() == HELD,
            'a reservation of which nothing can be written',
        )
        self.assertEqual(HELD, self.reserved.held())

    def test_full(self):
        process = self.run_mounted('tmpfs', '-t tmpfs -o size=400k')
        self.eventually(
            lambda: self.logged('vsched agent of') == 1, 'the agent'
        )
        # The reports go nowhere, and are enough to fill it in the end; this
        # is quicker.
        filler = os.path.join(self.state_path, 'filler')
        self.inside(process, 'dd', 'if=/dev/zero', 'of=' + filler, 'bs=4k')
        self.eventually(
            lambda: self.logged('journal.storage_lost') == 1, 'the word of it'
        )
        self.assert_enforces()
        agent_guests.pause(7.0)
        self.assertEqual(1, self.logged('journal.storage_lost'))
        self.assertEqual(0, self.logged('Traceback'))
        self.assertIsNone(process.poll())
        self.inside(process, 'rm', filler)
        self.eventually(
            lambda: self.logged('journal.storage_back') == 1, 'the end of it'
        )
        # Both as they are at one moment: a checkpoint between the two copies
        # would be in neither.
        process.send_signal(signal.SIGSTOP)
        self.inside(process, 'cp', self.path, self.path + '-wal', '/dev/shm/')
        process.send_signal(signal.SIGCONT)
        name = '/dev/shm/agent.sqlite'
        self.addCleanup(
            lambda: [os.unlink(one) for one in glob.glob(name + '*')]
        )
        with contextlib.closing(store.Journal(name)) as book:
            self.assertIn((self.plain.uuid, 'deadline'), book.touched())
            self.assertGreater(book.outbox.waiting(), 3)
            self.assertEqual(
                [], book._storage.rows('SELECT * FROM quarantine')
            )

    def test_read_only_from_the_start(self):
        process = self.run_mounted(self.state_path, '-o bind,ro')
        self.eventually(
            lambda: self.logged('journal.storage_lost') == 1, 'the word of it'
        )
        self.assert_enforces()
        self.assertEqual(0, self.logged('Traceback'))
        self.assertIsNone(process.poll())
        self.inside(process, 'mount', '-o', 'remount,bind,rw', self.state_path)
        self.eventually(
            lambda: self.logged('journal.storage_back') == 1, 'the end of it'
        )
        self.end(process)
        process.wait()
        with contextlib.closing(store.Journal(self.path)) as book:
            self.assertIn((self.plain.uuid, 'deadline'), book.touched())

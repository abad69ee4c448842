# SPDX-License-Identifier: Apache-2.0
"""The journal on a file system that is full, or read-only.

A real one: a small tmpfs in a mount namespace of the test's own.
"""

import json
import os
import subprocess
import sys
import tempfile

from oslotest import base as test_base

_MOUNT = (
    'mount -t tmpfs -o size=600k tmpfs "$1" || exit 99; exec "$2" -c "$3" "$1"'
)

_BEGIN = """
import contextlib, json, os, subprocess, sys
from vsched_agent.state import storage
from vsched_agent.state import store
from vsched_lib.contract import messages

U = '00000000-0000-4000-8000-%012d'
folder = sys.argv[1]
state = os.path.join(folder, 'state')
path = os.path.join(state, 'agent.sqlite')
now_s = 0.0


def open_journal():
    book = store.Journal(path)
    book._storage._clock = lambda: now_s
    return book


def batch(number):
    return messages.Report('here', number, 1.0, usage=tuple(
        messages.UsageSample(U % 1, float(index), 1, 1, 0)
        for index in range(20)))


def drain(book, most=10 ** 6):
    found = []
    while len(found) < most and (report := book.outbox.oldest()) is not None:
        found.append(report.batch)
        book.outbox.confirm(report.batch)
    return found


book = open_journal()
book.remember(U % 1, 'deadline', 10, {11: {'nice': 1}})
posted = [book.outbox.post(batch) for _ in range(3)]
told = []
"""

_FULL = (
    _BEGIN
    + """
with contextlib.suppress(OSError), open(folder + '/filler', 'wb') as filler:
    while True:
        filler.write(bytes(4096))
        filler.flush()
while not book.degraded:
    posted.append(book.outbox.post(batch))
told += [one.code for one in book.notices()]
book.remember(U % 2, 'deadline', 20, {21: {'nice': 2}})
posted += [book.outbox.post(batch) for _ in range(5)]
delivered = drain(book, 4)
# Still full.
now_s += storage.RETRY_S
posted.append(book.outbox.post(batch))
still = book.degraded
os.unlink(folder + '/filler')
now_s += storage.RETRY_S
posted.append(book.outbox.post(batch))
told += [one.code for one in book.notices()]
back = not book.degraded
book.close()
book = open_journal()
delivered += drain(book)
print(json.dumps([told, still, back, posted == delivered, len(posted),
                  book.touched()]))
"""
)

_READ_ONLY = (
    _BEGIN
    + """
book.close()


def remount(how):
    subprocess.run(['mount', '-o', 'remount,' + how, folder], check=True)


remount('ro')
book = open_journal()
still = book.degraded
told += [one.code for one in book.notices()]
book.remember(U % 2, 'deadline', 20, {21: {'nice': 2}})
posted += [book.outbox.post(batch) for _ in range(5)]
delivered = drain(book, 4)
remount('rw')
# It was opened by the real clock.
now_s += 1e9
posted.append(book.outbox.post(batch))
told += [one.code for one in book.notices()]
back = not book.degraded
book.close()
book = open_journal()
delivered += drain(book)
print(json.dumps([told, still, back, posted == delivered, len(posted),
                  book.touched()]))
"""
)


class JournalDiskTest(test_base.BaseTestCase):
    def run_on(self, script):
        if os.geteuid() != 0:
            self.skipTest('only root may mount a file system')
        with tempfile.TemporaryDirectory() as folder:
            found = subprocess.run(
                [
                    'unshare',
                    '-m',
                    'sh',
                    '-c',
                    _MOUNT,
                    'sh',
                    folder,
                    sys.executable,
                    script,
                ],
                check=False,
                capture_output=True,
                text=True,
                timeout=120,
            )
        self.assertEqual(0, found.returncode, found.stderr)
        told, still, back, same, posted, touched = json.loads(
            found.stdout.splitlines()[-1]
        )
        self.assertEqual(
            ['vsched.journal.storage_lost', 'vsched.journal.storage_back'],
            told,
        )
        self.assertEqual((True, True), (still, back))
        # Each batch once, in order, through all of it.
        self.assertTrue(same)
        self.assertGreater(posted, 7)
        self.assertEqual(
            ['00000000-0000-4000-8000-%012d' % number for number in (1, 2)],
            [uuid for uuid, _ in touched],
        )

    def test_full(self):
        self.run_on(_FULL)

    def test_read_only(self):
        self.run_on(_READ_ONLY)

# SPDX-License-Identifier: Apache-2.0

"""A procfs whose threads run as fast as a test says."""

import os
import pathlib
import shutil

import fixtures

#: The parent of QEMU's processes under libvirt's daemon.
INIT = 1


class FakeProc(fixtures.Fixture):
    """A folder that looks like /proc."""

    def _setUp(self) -> None:
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def set(
        self,
        pid: int,
        tid: int,
        run_ns: int,
        wait_ns: int = 0,
        timeslices: int = 0,
        *,
        start_ticks: int = 0,
        comm: str = '',
        parent: int = INIT,
    ) -> None:
        """Say where a thread's counters stand; starts it if need be."""
        folder = self.path / str(pid) / 'task' / str(tid)
        folder.mkdir(parents=True, exist_ok=True)
        # Written in place, as an open file of procfs sees it.
        (folder / 'schedstat').write_text(
            '%d %d %d\n' % (run_ns, wait_ns, timeslices)
        )
        stat = '%d (%s) S %d %s %d 0 0\n' % (
            tid,
            comm,
            parent,
            ' '.join(['0'] * 17),
            start_ticks,
        )
        for place in [folder] + [folder.parent.parent] * (tid == pid):
            (place / 'stat').write_text(stat)
            (place / 'comm').write_text(comm + '\n')

    def end(self, pid: int, tid: int | None = None) -> None:
        """A thread ends, or a whole process."""
        folder = self.path / str(pid)
        if tid is not None:
            folder = folder / 'task' / str(tid)
        # An open file of a thread that has ended can not be read; here it
        # is found to hold nothing.
        for file in folder.glob('**/schedstat'):
            file.write_text('')
        shutil.rmtree(folder)

    def open_device(self, pid: int, number: int, path: str) -> None:
        """A process opens a file."""
        folder = self.path / str(pid) / 'fd'
        folder.mkdir(parents=True, exist_ok=True)
        os.symlink(path, folder / str(number))

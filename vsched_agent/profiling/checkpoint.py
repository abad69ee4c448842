# SPDX-License-Identifier: Apache-2.0

"""What a run has measured so far, so that it can go on later.

One JSON object a line: the first says what the run is about, every other is
one point with what was measured of it. A line that was cut short by a crash
is as if it had never been begun.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import fcntl
import json
import os
import typing as ty


class Busy(Exception):
    """Another run is under way on this host."""


class NotTheSame(Exception):
    """What is there belongs to another run."""


class RunFile:
    """One run's file, held by this process.

    :param path: of the file; its folder is made.
    :param header: what the run is about, JSON types.
    :param resume: go on with what is there, if anything is.
    :raises Busy: when another process holds it.
    :raises NotTheSame: when what is there is about something else.
    """

    def __init__(
        self, path: str, header: Mapping[str, ty.Any], resume: bool
    ) -> None:
        os.makedirs(os.path.dirname(path), mode=0o750, exist_ok=True)
        self._path = path
        # The lock is the open file's and ends with its process.
        self._file = open(path, 'a+', encoding='utf-8')
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise Busy('another run holds %s' % path) from None
        try:
            self.done = self._begin(dict(header), resume)
        except BaseException:
            self._file.close()
            raise

    def add(self, key: str, values: Sequence[int]) -> None:
        """Keep one point for good."""
        self._write({'point': key, 'values': list(values)})
        self.done[key] = tuple(values)

    def close(self) -> None:
        """Let go of it; it can be gone on with."""
        self._file.close()

    def discard(self) -> None:
        """The run is over."""
        os.unlink(self._path)
        self.close()

    def _begin(
        self, header: dict[str, ty.Any], resume: bool
    ) -> dict[str, tuple[int, ...]]:
        self._file.seek(0)
        whole, lines = 0, []
        for line in self._file:
            if not line.endswith('\n'):
                break
            try:
                lines.append(json.loads(line))
            except ValueError:
                break
            whole += len(line.encode())
        self._file.truncate(whole if resume and lines else 0)
        if not (resume and lines):
            self._write(header)
            return {}
        # Compared as JSON has it, where tuples are lists.
        differ = sorted(
            name
            for name in header.keys() | lines[0].keys()
            if json.loads(json.dumps(header.get(name))) != lines[0].get(name)
        )
        if differ:
            raise NotTheSame(
                '%s is a run with another %s; run without --resume to begin '
                'anew' % (self._path, ', '.join(differ))
            )
        return {line['point']: tuple(line['values']) for line in lines[1:]}

    def _write(self, line: Mapping[str, ty.Any]) -> None:
        self._file.seek(0, os.SEEK_END)
        self._file.write(json.dumps(line) + '\n')
        self._file.flush()
        os.fsync(self._file.fileno())

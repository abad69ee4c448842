# SPDX-License-Identifier: Apache-2.0

"""A live table of the reserved and the measured CPUs of each VM."""

from collections.abc import Sequence
import dataclasses
import typing as ty

_HEADER = '%-22s %9s %9s %8s  %-9s %s' % (
    'VM',
    'promised',
    'got',
    'error',
    'backend',
    'state',
)


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One VM in its latest window; in CPUs.

    :param promised: the reservation; None without one.
    :param got: None before its first window.
    """

    name: str
    promised: float | None
    got: float | None
    backend: str
    state: str

    def __str__(self) -> str:
        error = ''
        if self.promised and self.got is not None:
            error = '%+.1f %%' % (
                100 * (self.got - self.promised) / self.promised
            )
        return '%-22s %9s %9s %8s  %-9s %s' % (
            self.name[:22],
            '-' if self.promised is None else '%.3f' % self.promised,
            '-' if self.got is None else '%.3f' % self.got,
            error or '-',
            self.backend,
            self.state,
        )


class Table:
    """A table that redraws in place on a terminal, else prints periodically.

    :param out: the output stream.
    :param every: on anything but a terminal, print every n-th update.
    """

    def __init__(self, out: ty.TextIO, every: int = 5) -> None:
        self._out = out
        self._every = 1 if out.isatty() else every
        self._updates = 0
        self._lines = 0

    def draw(self, progress: str, rows: Sequence[Row]) -> None:
        """Draw the table.

        :param progress: one line about the phase and the time left.
        """
        self._updates += 1
        if (self._updates - 1) % self._every:
            return
        if self._out.isatty() and self._lines:
            self._out.write('\x1b[%dA\x1b[J' % self._lines)
        lines = [progress, _HEADER, *(str(row) for row in rows)]
        self._out.write('\n'.join(lines) + '\n')
        self._out.flush()
        self._lines = len(lines)

    def say(self, text: str) -> None:
        """Print a line that stays above the table."""
        self._out.write(text + '\n')
        self._out.flush()
        self._lines = 0
        self._updates = 0

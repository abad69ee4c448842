# SPDX-License-Identifier: Apache-2.0

"""Shows how far a job has got, beside the output."""

from collections.abc import Callable
import shutil
import time
import typing as ty

from vsched_client.osc import terminal
from vsched_client import units

_WIDTH = 20
#: Without a terminal a line is written when this part of the work, in ppm,
#: was done since the last one.
_STEP_PPM = 100_000
#: Clears the rest of a line of a terminal.
_CLEAR = '\r\x1b[K'


class Progress:
    """A bar on a terminal; elsewhere a line now and then.

    :param stream: takes the text.
    :param clock: in seconds.
    """

    def __init__(
        self, stream: ty.TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._began: tuple[float, int] | None = None
        self._shown: tuple[str, int] | None = None

    def show(self, job: ty.Any) -> None:
        """Show the state of a job."""
        done_ppm = max(0, min(units.PPM, job['progress_ppm']))
        if self._began is None or done_ppm < self._began[1]:
            self._began = self._clock(), done_ppm
        text = '%s %3d %%  %s%s' % (
            job['state'],
            done_ppm // 10_000,
            terminal.clean(job['detail']),
            self._left(done_ppm),
        )
        if self._stream.isatty():
            filled = done_ppm * _WIDTH // units.PPM
            line = '[%s%s] %s' % ('#' * filled, '.' * (_WIDTH - filled), text)
            # A line that is wrapped could not be cleared.
            columns = shutil.get_terminal_size().columns
            self._stream.write(_CLEAR + line[: columns - 1])
        elif self._changed(job['state'], done_ppm):
            self._stream.write(text + '\n')
        self._stream.flush()

    def close(self) -> None:
        """Leave the line of the bar."""
        if self._began is not None and self._stream.isatty():
            self._stream.write('\n')
            self._stream.flush()

    def _changed(self, state: str, done_ppm: int) -> bool:
        if self._shown is not None:
            before, before_ppm = self._shown
            if state == before and done_ppm - before_ppm < _STEP_PPM:
                return False
        self._shown = state, done_ppm
        return True

    def _left(self, done_ppm: int) -> str:
        """Return how long the rest takes at the pace so far."""
        if self._began is None:
            return ''
        began, began_ppm = self._began
        if done_ppm <= began_ppm or done_ppm >= units.PPM:
            return ''
        return ', about %s left' % units.format_seconds(
            (self._clock() - began)
            * (units.PPM - done_ppm)
            / (done_ppm - began_ppm)
        )

# SPDX-License-Identifier: Apache-2.0

"""Commands of this repository that tests run."""

import os
import pathlib
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]

#: How long a command may take to clean up when it is told to end.
_GRACE_S = 30


def run(*words: str, timeout_s: float) -> str:
    """Run a command in the repository; return its output.

    :raises AssertionError: when it fails or takes longer, with the end of
        its output. Nothing of it runs on.
    """
    # A process group of its own: what it has started ends with it.
    process = subprocess.Popen(
        words,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=timeout_s)
        result = 'exit status %d' % process.returncode
    except subprocess.TimeoutExpired:
        said = _end(process)
        result = 'not ended after %g s' % timeout_s
    except BaseException:
        # The time limit of the test.
        _end(process)
        raise
    if result != 'exit status 0':
        raise AssertionError(
            '%s: %s\n%s' % (' '.join(words), result, said[-8000:])
        )
    return said


def _end(process: subprocess.Popen[str]) -> str:
    """End a command and all that it has started; return its output."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        said, _ = process.communicate(timeout=_GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
    return said

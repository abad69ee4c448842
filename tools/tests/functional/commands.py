# SPDX-License-Identifier: Apache-2.0

"""Commands of this repository that tests run."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]


def run(*words: str, timeout_s: float) -> str:
    """Run a command in the repository; return its output.

    :raises AssertionError: when it fails, with the end of its output.
    """
    done = subprocess.run(
        words,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    if done.returncode:
        raise AssertionError(
            '%s: exit status %d\n%s'
            % (' '.join(words), done.returncode, done.stdout[-8000:])
        )
    return done.stdout

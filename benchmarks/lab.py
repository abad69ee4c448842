# SPDX-License-Identifier: Apache-2.0

"""Measures in lab nodes, and runs their tests."""

import json
import pathlib
import subprocess
import tempfile
import time
import typing as ty

from benchmarks import frame


def inside(
    kind: str, options: ty.Sequence[str], module: str, *arguments: object
) -> dict[str, float]:
    """Run a module in a node, which writes its figures to a file.

    :param kind: of the node.
    :param options: of ``tools/lab.sh``.
    :param arguments: of the module, before the name of the file.
    :raises frame.Unavailable: when the node or the module fails.
    """
    words = ' '.join(map(str, (module, *arguments)))
    with tempfile.TemporaryDirectory(prefix='vsched-bench-') as folder:
        done = subprocess.run(
            [
                frame.ROOT / 'tools' / 'lab.sh',
                *options,
                '--results',
                folder,
                kind,
                '--',
                'bash',
                '-c',
                'python -W ignore -m %s "$VSCHED_LAB_RESULTS/figures.json"'
                % words,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        path = pathlib.Path(folder, 'figures.json')
        if done.returncode or not path.exists():
            raise frame.Unavailable(
                'node %s %s failed (%d): %s'
                % (
                    kind,
                    ' '.join(options),
                    done.returncode,
                    done.stdout[-2000:],
                )
            )
        found: dict[str, float] = json.loads(path.read_text(encoding='utf-8'))
        return found


def lane(option: str) -> dict[str, float]:
    """Run the tests of a node.

    :param option: of ``tools/test.sh``.
    :returns: how many passed and failed, and the seconds it took.
    :raises frame.Unavailable: when there are no counts.
    """
    began_s = time.monotonic()
    done = subprocess.run(
        [frame.ROOT / 'tools' / 'test.sh', option],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return {**counts(done.stdout), 'seconds': time.monotonic() - began_s}


def counts(output: str) -> dict[str, float]:
    """Read the last line of ``tools/test.sh``: ``N passed, N failed``.

    :raises frame.Unavailable: when there is none.
    """
    found = {}
    for part in output.strip().rpartition('\n')[2].split(', '):
        number, _, word = part.partition(' ')
        if number.isdecimal():
            found[word] = float(number)
    if not {'passed', 'failed'} <= found.keys():
        raise frame.Unavailable('no counts: %s' % output[-2000:])
    return found

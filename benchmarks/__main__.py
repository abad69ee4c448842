# SPDX-License-Identifier: Apache-2.0

"""``python -m benchmarks NAME [--quick]``, ``--targets``, ``--stale``."""

import argparse
from collections.abc import Sequence
import signal
import sys
import typing as ty

from benchmarks import catalogue
from benchmarks import evidence
from benchmarks import frame
from benchmarks import history


def _terminate(number: int, _frame: ty.Any) -> ty.NoReturn:
    # As an exception, so that everything that was started is ended.
    sys.exit(128 + number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks',
        description='Run benchmarks. Prints one JSON object a line, and '
        'keeps the record of a full run in '
        'benchmarks/results/NAME.',
    )
    parser.add_argument(
        'names',
        metavar='NAME',
        nargs='*',
        choices=[[], *catalogue.NAMES],
        help='which to run',
    )
    parser.add_argument(
        '--quick',
        action='store_true',
        help='a short run, good for a look and no more; its record is not '
        'kept',
    )
    parser.add_argument(
        '--dirty',
        action='store_true',
        help='make a full run of a tree with changes that no commit has; '
        'its record is marked',
    )
    parser.add_argument(
        '--list', action='store_true', help='print what there is'
    )
    parser.add_argument(
        '--targets',
        action='store_true',
        help='print every target, what was measured and whether it is met',
    )
    parser.add_argument(
        '--stale',
        action='store_true',
        help='print the newest records that are older than the code they '
        'exercise, or from a tree with changes',
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run benchmarks; returns the exit code."""
    options = _parser().parse_args(argv)
    if options.targets or options.stale:
        for line in (
            evidence.target_lines()
            if options.targets
            else evidence.stale_lines()
        ):
            print(line)
        return 0
    if options.list or not options.names:
        for name in catalogue.NAMES:
            print('%-16s %s' % (name, catalogue.load(name).ABOUT.title))
        return 0
    if (
        frame.commit().endswith('-dirty')
        and not options.quick
        and not options.dirty
    ):
        print(
            'the tree has changes outside of benchmarks/results that no '
            'commit has, so nobody could tell what was measured: commit '
            'them, or give --quick (keeps no record) or --dirty (marks it)',
            file=sys.stderr,
        )
        return 2
    signal.signal(signal.SIGTERM, _terminate)
    for name in options.names:
        benchmark = catalogue.load(name)
        try:
            # Some take the lock for parts, and some did not take it at all.
            with frame.alone():
                record = frame.execute(
                    name,
                    benchmark,
                    options.quick,
                    lambda line: print(line, flush=True),
                    history.digest(name, benchmark.ABOUT),
                )
        except frame.Unavailable as error:
            print('%s: %s' % (name, error), file=sys.stderr)
            return 1
        path = history.keep(record)
        print(
            '%s: %s'
            % (
                name,
                'a quick run, no record is kept'
                if path is None
                else 'record in %s' % path,
            ),
            file=sys.stderr,
        )
    return 0


if __name__ == '__main__':
    sys.exit(main())

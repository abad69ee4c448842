# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""``python -m benchmarks NAME [--quick]``."""

import argparse
from collections.abc import Sequence
import signal
import sys
import typing as ty

from benchmarks import catalogue
from benchmarks import frame


def _terminate(number: int, _frame: ty.Any) -> ty.NoReturn:
    # As an exception, so that everything that was started is ended.
    sys.exit(128 + number)


def main(argv: Sequence[str] | None = None) -> int:
    """Run benchmarks; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks',
        description='Run benchmarks. Prints one JSON object a line and '
                    'writes benchmarks/results/NAME.json.')
    parser.add_argument(
        'names', metavar='NAME', nargs='*', choices=[[], *catalogue.NAMES],
        help='which to run')
    parser.add_argument(
        '--quick', action='store_true',
        help='a short run, good for a look and no more; it does not '
             'replace the result of a full one')
    parser.add_argument(
        '--force', action='store_true',
        help='let a quick run replace the result of a full one')
    parser.add_argument(
        '--list', action='store_true', help='say what there is')
    options = parser.parse_args(argv)
    if options.list or not options.names:
        for name in catalogue.NAMES:
            print('%-16s %s' % (name, catalogue.load(name).ABOUT.title))
        return 0
    signal.signal(signal.SIGTERM, _terminate)
    for name in options.names:
        try:
            record = frame.execute(
                name, catalogue.load(name), options.quick,
                lambda line: print(line, flush=True))
        except frame.Unavailable as error:
            print('%s: %s' % (name, error), file=sys.stderr)
            return 1
        if not frame.keep(record, force=options.force):
            print('%s: the result of a full run is kept; --force replaces '
                  'it' % name, file=sys.stderr)
    return 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
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

"""Count the results of several test runs.

    tools/subunit_counts.py [--failed N] [--again FILE] FILE...

Reads subunit streams (``stestr last --subunit >FILE``) and prints one line,
``N passed, N failed`` and ``, N skipped`` where tests were skipped. A test
that began and never ended (its worker died) has failed. ``--failed`` adds
failures that left no stream; what a test did in the stream of ``--again``
counts instead of what it did before. The exit code is 0 if something passed
and nothing failed.
"""

import argparse
import collections
import sys
import typing

import subunit
import testtools

#: What a status counts as. Listed tests ('exists') did not run.
OUTCOMES = {
    'success': 'passed',
    'xfail': 'passed',
    'skip': 'skipped',
    'fail': 'failed',
    'uxsuccess': 'failed',
    'inprogress': 'failed',
    'unknown': 'failed',
}


def outcomes(stream: typing.BinaryIO) -> list[tuple[str, str]]:
    """Read how the tests in one stream ended.

    :param stream: bytes in subunit version 2
    :returns: each test's name, which may be another's as well, with
        'passed', 'failed' or 'skipped'
    """
    found: list[tuple[str, str]] = []

    def take(test: typing.Any) -> None:
        if test['status'] != 'exists':
            found.append((test['id'], OUTCOMES[test['status']]))

    result = testtools.StreamToDict(take)
    result.startTestRun()
    subunit.ByteStreamToStreamResult(stream).run(result)
    # Reports what is still in progress.
    result.stopTestRun()
    return found


def line(counts: collections.Counter[str]) -> str:
    """Put the counts into words.

    :param counts: number of tests by outcome
    :returns: the closing line of a run
    """
    text = '%d passed, %d failed' % (counts['passed'], counts['failed'])
    if counts['skipped']:
        text += ', %d skipped' % counts['skipped']
    return text


def main() -> int:
    """Run the command.

    :returns: the exit code
    """
    parser = argparse.ArgumentParser(description='Count test results.')
    parser.add_argument('--failed', type=int, default=0, metavar='N')
    parser.add_argument('--again', action='append', default=[],
                        metavar='FILE')
    parser.add_argument('files', nargs='*', metavar='FILE')
    arguments = parser.parse_args()
    total = collections.Counter(failed=arguments.failed)
    again: dict[str, str] = {}
    for name in arguments.again:
        with open(name, 'rb') as stream:
            again.update(outcomes(stream))
    for name in arguments.files:
        with open(name, 'rb') as stream:
            total.update(
                again.get(test, outcome) if outcome == 'failed' else outcome
                for test, outcome in outcomes(stream))
    print(line(total))
    return 0 if total['passed'] and not total['failed'] else 1


if __name__ == '__main__':
    sys.exit(main())

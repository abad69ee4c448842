#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""Count the results of the test runs in one directory.

    tools/subunit_counts.py DIRECTORY
    tools/subunit_counts.py --repeatable STREAM

``tools/test.sh`` leaves there, for each run NAME:

``NAME.subunit``
    the stream, complete up to the moment at which the run ended or was ended
``NAME.status``
    the exit status of the run; missing if the run has not ended

and ``failures``, a line for each failure that is no test's, such as a service
that does not start, and ``omissions``, a line for what cannot be run there.
Prints why tests failed, then which ones did, and what else is notable about
the runs, then one line, ``N passed, N failed`` and
``, N skipped`` where tests were skipped. The exit code is 0 if something
passed and nothing failed.

``isolated.subunit`` has a second run, each test alone, of the few tests of
another run that failed. One that passes there counts as passed, and a line
tells that it failed first. ``--repeatable`` prints a regular expression of the
tests in a stream that may be repeated: none when the run was cut, or when more
than :data:`REPEATABLE` failed.

A test that began and did not end has failed. So has a run without any
result, and one that ended with an error or was ended while no test of it
failed.
"""

import argparse
import collections
import dataclasses
import itertools
import pathlib
import re
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
#: The name under which stestr reports that a worker died.
DEAD_WORKER = 'process-returncode'
#: How much is shown of why tests failed: of how many tests, and how many
#: lines of each; and how many are named. The rest is in the stream.
SHOWN_FAILURES = 10
SHOWN_LINES = 30
NAMED_FAILURES = 50
#: The run of single tests, and the most tests of a run that are repeated.
ISOLATED = 'isolated'
REPEATABLE = 2
#: Under such a name a class fails, before or after its tests.
_CLASS = re.compile(r'(?:setUp|tearDown)Class \((?P<name>[\w.]+)\)\Z')


@dataclasses.dataclass(frozen=True)
class Stream:
    """What one stream says.

    :param counts: number of tests by outcome.
    :param unfinished: tests that began and did not end.
    :param not_run: number of tests that were listed and did not begin.
    :param failures: tests that failed, with the end of their tracebacks.
    :param passed: tests that passed.
    """

    counts: collections.Counter[str]
    unfinished: list[str]
    not_run: int
    failures: dict[str, list[str]]
    passed: frozenset[str]

    def passes(self, test: str) -> bool:
        """Return whether a test passed, or a class without a failure.

        :param test: a name of :attr:`failures` of another stream
        """
        if not (group := _CLASS.match(test)):
            return test in self.passed
        return not self.failures and any(
            one.startswith(group['name'] + '.') for one in self.passed
        )

    def repeatable(self) -> str:
        """Return a regular expression of the failed tests to run again."""
        if (
            self.unfinished
            or self.not_run
            or not 0 < len(self.failures) <= REPEATABLE
        ):
            return ''
        return '^(%s)' % '|'.join(
            re.escape(group['name'] + '.')
            if (group := _CLASS.match(test))
            else re.escape(test) + '$'
            for test in self.failures
        )


def why(result: dict[str, typing.Any]) -> list[str]:
    """Tell why a test failed.

    :param result: what testtools made of its events
    :returns: the last lines of its tracebacks, or of its reason
    """
    text = ''.join(
        content.as_text()
        for name, content in sorted(result['details'].items())
        if name.startswith(('traceback', 'reason'))
    )
    return text.rstrip().splitlines()[-SHOWN_LINES:]


def read(stream: typing.BinaryIO) -> Stream:
    """Read how the tests in one stream ended.

    :param stream: bytes in subunit version 2, possibly mixed with other
        output
    :returns: what it says
    """
    results: list[dict[str, typing.Any]] = []
    result = testtools.StreamToDict(results.append)
    result.startTestRun()
    subunit.ByteStreamToStreamResult(stream, non_subunit_name='stdout').run(
        result
    )
    # Reports what is still in progress.
    result.stopTestRun()
    listed = {one['id'] for one in results if one['status'] == 'exists'}
    ran = [one for one in results if one['status'] != 'exists']
    unfinished = [one for one in ran if one['status'] == 'inprogress']
    workers = [one['tags'] for one in unfinished]
    # The death of a worker is counted once: as the test that it was in, or
    # by itself if it was between two tests.
    counted = [
        one
        for one in ran
        if one['id'] != DEAD_WORKER or one['tags'] not in workers
    ]
    return Stream(
        collections.Counter(OUTCOMES[one['status']] for one in counted),
        [one['id'] for one in unfinished],
        len(listed - {one['id'] for one in ran}),
        {
            one['id']: why(one)
            for one in counted
            if OUTCOMES[one['status']] == 'failed'
        },
        frozenset(
            one['id'] for one in ran if OUTCOMES[one['status']] == 'passed'
        ),
    )


def lines_of(path: pathlib.Path) -> list[str]:
    """Return the lines of a file; none where it is missing."""
    try:
        return path.read_text('utf-8').splitlines()
    except FileNotFoundError:
        return []


def line(counts: collections.Counter[str]) -> str:
    """Format the counts.

    :param counts: number of tests by outcome
    :returns: the last line of a run
    """
    text = '%d passed, %d failed' % (counts['passed'], counts['failed'])
    if counts['skipped']:
        text += ', %d skipped' % counts['skipped']
    return text


def count_run(
    path: pathlib.Path,
    reasons: list[str],
    notes: list[str],
    isolated: Stream | None = None,
) -> collections.Counter[str]:
    """Count one run.

    :param path: the stream; its status is beside it
    :param reasons: takes why tests failed
    :param notes: takes what is notable about the run
    :param isolated: the second run of tests that failed in this one
    :returns: number of tests by outcome
    """
    name = path.stem
    with path.open('rb') as file:
        stream = read(file)
    try:
        status = path.with_suffix('.status').read_text('utf-8').strip()
    except FileNotFoundError:
        status = ''
    counts = stream.counts
    for test, lines in list(stream.failures.items())[:SHOWN_FAILURES]:
        reasons.append('%s tests: why %s failed:' % (name, test))
        reasons.extend('    ' + one for one in lines)
    # Logs are often kept by their ends, which have the names at least.
    notes.extend(
        '%s tests: failed: %s' % (name, test)
        for test in itertools.islice(stream.failures, NAMED_FAILURES)
    )
    for test in stream.unfinished:
        notes.append('%s tests: did not end: %s' % (name, test))
    if stream.not_run:
        notes.append('%s tests: %d did not run' % (name, stream.not_run))
    if status != '0':
        notes.append(
            '%s tests: %s'
            % (name, 'ended with status ' + status if status else 'were ended')
        )
    if not counts.total():
        notes.append('%s tests: none ran' % name)
        counts['failed'] += 1
    elif status != '0' and not counts['failed']:
        counts['failed'] += 1
    for test in stream.failures if isolated else ():
        if isolated and isolated.passes(test):
            counts['failed'] -= 1
            group = _CLASS.match(test)
            # A class that failed before its tests has none counted.
            counts['passed'] += sum(
                one.startswith(group['name'] + '.') if group else one == test
                for one in isolated.passed - stream.passed
            )
            notes.append(
                '%s tests: FAILED FIRST, and passed alone: %s' % (name, test)
            )
    return counts


def main() -> int:
    """Run the command.

    :returns: the exit code
    """
    parser = argparse.ArgumentParser(description='Count test results.')
    parser.add_argument('path', type=pathlib.Path, metavar='DIRECTORY')
    parser.add_argument('--repeatable', action='store_true')
    options = parser.parse_args()
    directory = options.path
    if options.repeatable:
        with directory.open('rb') as file:
            print(read(file).repeatable())
        return 0
    total: collections.Counter[str] = collections.Counter()
    reasons: list[str] = []
    notes: list[str] = []
    isolated = None
    second = directory / (ISOLATED + '.subunit')
    if second.exists():
        with second.open('rb') as file:
            isolated = read(file)
    for path in sorted(directory.glob('*.subunit')):
        if path != second:
            total.update(count_run(path, reasons, notes, isolated))
    failures = lines_of(directory / 'failures')
    total['failed'] += len(failures)
    omissions = lines_of(directory / 'omissions')
    for text in [*reasons, *notes, *omissions, *failures]:
        print(text)
    print(line(total))
    return 0 if total['passed'] and not total['failed'] else 1


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""Count the results of the test runs in one directory.

    tools/subunit_counts.py DIRECTORY

``tools/test.sh`` leaves there, for each run NAME:

``NAME.subunit``
    the stream, complete up to the moment at which the run ended or was ended
``NAME.status``
    the exit status of the run; missing if the run has not ended

and ``failures``, a line for each failure that is no test's, such as a service
that does not start. Prints which tests failed and why, what else is notable
about the runs, then one line,
``N passed, N failed`` and ``, N skipped`` where tests were skipped. The exit
code is 0 if something passed and nothing failed.

A test that began and did not end has failed. So has a run without any
result, and one that ended with an error or was ended while no test of it
failed.
"""

import argparse
import collections
import dataclasses
import pathlib
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
#: lines of each. The rest is in the stream.
SHOWN_FAILURES = 10
SHOWN_LINES = 30


@dataclasses.dataclass(frozen=True)
class Stream:
    """What one stream says.

    :param counts: number of tests by outcome.
    :param unfinished: tests that began and did not end.
    :param not_run: number of tests that were listed and did not begin.
    :param failures: tests that failed, with the end of their tracebacks.
    """

    counts: collections.Counter[str]
    unfinished: list[str]
    not_run: int
    failures: dict[str, list[str]]


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
    )


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
    path: pathlib.Path, notes: list[str]
) -> collections.Counter[str]:
    """Count one run.

    :param path: the stream; its status is beside it
    :param notes: takes what is notable about the run
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
        notes.append('%s tests: failed: %s' % (name, test))
        notes.extend('    ' + one for one in lines)
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
    return counts


def main() -> int:
    """Run the command.

    :returns: the exit code
    """
    parser = argparse.ArgumentParser(description='Count test results.')
    parser.add_argument('directory', type=pathlib.Path, metavar='DIRECTORY')
    directory = parser.parse_args().directory
    total: collections.Counter[str] = collections.Counter()
    notes: list[str] = []
    for path in sorted(directory.glob('*.subunit')):
        total.update(count_run(path, notes))
    try:
        failures = (directory / 'failures').read_text('utf-8').splitlines()
    except FileNotFoundError:
        failures = []
    total['failed'] += len(failures)
    for text in [*notes, *failures]:
        print(text)
    print(line(total))
    return 0 if total['passed'] and not total['failed'] else 1


if __name__ == '__main__':
    sys.exit(main())

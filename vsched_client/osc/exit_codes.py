# SPDX-License-Identifier: Apache-2.0

"""Exit codes of the commands; ``doc/source/user/cli.rst`` lists them."""

import enum

from vsched_client import errors


class ExitCode(enum.IntEnum):
    """How a command ended."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    REFUSED = 3
    TIMED_OUT = 4
    CHANGED = 5
    DIFFERS = 6


class UsageError(errors.ClientError):
    """Options that contradict each other."""


#: Conflicts by which the API refuses what no agent would do.
_REFUSALS = (
    'vsched.backend.',
    'vsched.balloon.does_not_fit',
    'vsched.balloon.dry_run',
    'vsched.balloon.excluded',
    'vsched.balloon.guest_agent_unavailable',
    'vsched.balloon.out_of_bounds',
    'vsched.reservation.does_not_fit',
    'vsched.reservation.kernel_refused',
    'vsched.reservation.not_certified',
)


def of(problem: errors.ClientError) -> ExitCode:
    """Return the exit code that an error stands for."""
    match problem:
        case UsageError():
            return ExitCode.USAGE
        case errors.TimedOut():
            return ExitCode.TIMED_OUT
        case errors.Superseded() | errors.Outdated():
            return ExitCode.CHANGED
        case errors.Conflict() if problem.code.startswith(_REFUSALS):
            return ExitCode.REFUSED
    return ExitCode.ERROR

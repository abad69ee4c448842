# SPDX-License-Identifier: Apache-2.0

"""The events of communication awareness."""

import dataclasses
import typing as ty

from vsched_agent.communication import base
from vsched_agent.communication import load as loads
from vsched_agent.reservations import applied
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import reservation
from vsched_lib.model import wait_trial

Code = errors.Code


def why(load: loads.InstanceLoad) -> str:
    """Return what an instance communicates, as part of a sentence."""
    return (
        'it receives %d and sends %d packets a second, and a request takes '
        '%s of CPU time and %d us of the I/O thread that serves it'
        % (
            round(load.received_pps),
            round(load.sent_pps),
            '%d us' % round(load.burst_ns / reservation.NS_PER_US)
            if load.burst_ns < float('inf')
            else 'more than a whole runtime',
            round(load.io.busiest_request_ns / reservation.NS_PER_US),
        )
    )


def no_gain(outcome: wait_trial.Outcome) -> str:
    """Return what a trial that failed has shown, as part of a sentence."""
    return (
        'shorter periods did not help: its threads waited %d us for each '
        'packet before, and %d us with %d parts'
        % (
            round(outcome.before_ns / reservation.NS_PER_US),
            round(outcome.after_ns / reservation.NS_PER_US),
            outcome.granularity,
        )
    )


def _pairs(
    held: applied.Holding, desired: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    return (
        held.now.divided_ns,
        dataclasses.replace(held.now, granularity=desired).divided_ns,
    )


def _figures(held: applied.Holding, desired: int) -> dict[str, ty.Any]:
    before, after = _pairs(held, desired)
    return {
        'granularity_before': held.granularity,
        'runtime_before_ns': before[0],
        'period_before_ns': before[1],
        'granularity': desired,
        'runtime_ns': after[0],
        'period_ns': after[1],
    }


def divided(held: applied.Holding, desired: int, cause: str) -> base.Event:
    """Return the event of a new granularity.

    :param held: what was in force before.
    :param cause: why it has changed, as part of a sentence.
    """
    before, after = _pairs(held, desired)
    return base.Event(
        Code.PERIOD_DIVIDED,
        messages.Severity.INFO,
        'each vCPU gets %d ns every %d ns instead of %d ns every %d ns: %s'
        % (*after, *before, cause),
        _figures(held, desired),
    )


def refused(
    held: applied.Holding, desired: int, refusal: errors.Refused
) -> base.Event:
    """Return the event of a granularity that was not applied."""
    return base.Event(
        Code.PERIOD_REFUSED,
        messages.Severity.WARNING,
        'its periods are not divided by %d: %s (it keeps what it had)'
        % (desired, refusal.detail),
        {**_figures(held, desired), 'cause': str(refusal.code)},
    )

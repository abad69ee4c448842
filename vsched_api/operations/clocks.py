# SPDX-License-Identifier: Apache-2.0

"""Differences between the clocks of hosts and of the collector."""

#: Default of the difference from which on an event is stored, in seconds.
WARN_S = 30.0


def worth_an_event(
    before_s: float | None, now_s: float | None, warn_s: float
) -> bool:
    """Return whether a clock started or stopped to differ by too much.

    :param before_s: the difference at the last report; None when unknown.
    :param now_s: the difference at this report.
    """
    return now_s is not None and (abs(now_s) > warn_s) != (
        before_s is not None and abs(before_s) > warn_s
    )


def describe(skew_s: float) -> str:
    """Return a sentence about the difference."""
    return "the host's clock is %.1f s %s the collector's" % (
        abs(skew_s),
        'ahead of' if skew_s >= 0 else 'behind',
    )

# SPDX-License-Identifier: Apache-2.0

"""Clocks of hosts that differ from the collector's."""

#: From which difference on there is an event, unless it is set, in seconds.
WARN_S = 30.0


def worth_an_event(
    before_s: float | None, now_s: float | None, warn_s: float
) -> bool:
    """Whether a clock has begun, or ceased, to differ by too much.

    :param before_s: the difference at the last report; None: not known.
    :param now_s: likewise at this one.
    """
    return now_s is not None and (abs(now_s) > warn_s) != (
        before_s is not None and abs(before_s) > warn_s
    )


def describe(skew_s: float) -> str:
    """The difference in words."""
    return "the host's clock is %.1f s %s the collector's" % (
        abs(skew_s),
        'ahead of' if skew_s >= 0 else 'behind',
    )

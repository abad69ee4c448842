# SPDX-License-Identifier: Apache-2.0

"""Times as requests and answers say them."""

import datetime


def iso(seconds: float | None) -> str | None:
    """ISO 8601 in UTC, to the microsecond.

    :param seconds: since the epoch.
    :returns: None for a time that has no such form either: one bad row must
        not fail a whole page.
    """
    if seconds is None:
        return None
    try:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return moment.isoformat(timespec='microseconds').replace('+00:00', 'Z')


def seconds(text: str) -> float:
    """Seconds since the epoch; a time that names no zone is UTC.

    :raises ValueError: when it is not ISO 8601.
    """
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    try:
        return moment.timestamp()
    except OverflowError as problem:
        raise ValueError(str(problem)) from None

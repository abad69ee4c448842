# SPDX-License-Identifier: Apache-2.0

"""Which points of an error profile are valid for decisions."""

from collections.abc import Mapping
import typing as ty

from vsched_lib.contract import profiles


def differences(
    profile: profiles.Profile, host: Mapping[str, ty.Any]
) -> list[str]:
    """Return what has changed on a host since a profile was made.

    A profile with other facts is invalid for the host.

    :param host: facts of the kernel now, as in a profile.
    """
    found = [(name, getattr(profile, name), host[name]) for name in FACTS]
    if isinstance(profile, profiles.ErrorProfile):
        before = features(profile.features)
        now = features(host['features'])
        found += [(name, before[name], now[name]) for name in FEATURES]
    return [
        '%s: %s, now %s' % (name, before, now)
        for name, before, now in found
        if before != now
    ]


#: Facts that must not have changed.
FACTS = ('kernel', 'tick_us', 'cpus')
#: Likewise for errors: how often budgets are checked between ticks. A
#: profile without it is from before there were such checks.
FEATURES = ('budget_check_us',)


def features(found: Mapping[str, ty.Any]) -> dict[str, ty.Any]:
    """Return those of a profile's features that errors depend on.

    :param found: all features of a profile.
    """
    return {name: found.get(name, 0) for name in FEATURES}


def threads(profile: profiles.Profile) -> int:
    """Return for how many threads an error profile's budget checks hold.

    With more at once the helper may check late, and errors are unknown. A
    profile without the feature is from before it was counted.
    """
    return int(profile.features.get(THREADS, DEFAULT_THREADS))


#: The feature with their number, and its value before there was one.
THREADS = 'looked_at_threads'
DEFAULT_THREADS = 5


def contended(
    profile: profiles.ErrorProfile, backend: str, period_us: int
) -> list[profiles.ErrorPoint]:
    """Return the points that are valid for decisions.

    What a backend provides without contention is no evidence of what it
    guarantees.
    """
    return [
        point
        for point in profile.points
        if point.backend == backend
        and point.period_us == period_us
        and point.contenders > 0
    ]

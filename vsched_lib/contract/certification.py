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

"""Which points of an error profile a decision may rest on."""

from collections.abc import Mapping
import typing as ty

from vsched_lib.contract import profiles


def differences(profile: profiles.Profile,
                host: Mapping[str, ty.Any]) -> list[str]:
    """What has changed on a host since a profile was made, in words.

    A profile with other facts is about another host.

    :param host: facts of the kernel now, as in a profile.
    """
    found = [(name, getattr(profile, name), host[name]) for name in FACTS]
    if isinstance(profile, profiles.ErrorProfile):
        before = features(profile.features)
        now = features(host['features'])
        found += [(name, before[name], now[name]) for name in FEATURES]
    return ['%s: %s, now %s' % (name, before, now)
            for name, before, now in found if before != now]


#: What must not have changed.
FACTS = ('kernel', 'tick_us', 'cpus')
#: Nor this, for errors: how often budgets are looked at between ticks. A
#: profile that does not tell is from before there were such looks.
FEATURES = ('budget_check_us',)


def features(found: Mapping[str, ty.Any]) -> dict[str, ty.Any]:
    """Those of a profile's features that errors depend on.

    :param found: all features that a profile tells of.
    """
    return {name: found.get(name, 0) for name in FEATURES}


def contended(profile: profiles.ErrorProfile, backend: str,
              period_us: int) -> list[profiles.ErrorPoint]:
    """The points that a decision may rest on.

    What a backend gives while nobody else wants the CPU says nothing about
    what it guarantees.
    """
    return [point for point in profile.points
            if point.backend == backend and point.period_us == period_us
            and point.contenders > 0]

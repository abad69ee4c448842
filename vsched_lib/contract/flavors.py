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

"""How a flavor says what it promises, and claims as much.

The keys of our namespace say what is promised; those of our request group
have placement claim it. The second follow from the first.
"""

from collections.abc import Mapping
import dataclasses

from vsched_lib.contract import extra_specs
from vsched_lib.contract import placement

#: What it needs when there is a request group; any other word will do too.
GROUP_POLICY = 'group_policy'
_NO_POLICY = 'none'


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """What has to be done to a set of extra specs.

    :param added: keys that are missing or say something else.
    :param removed: keys that must go.
    """

    added: Mapping[str, str]
    removed: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def claiming(vcpus: int, specs: Mapping[str, str]) -> Change:
    """What makes a flavor claim what it promises.

    :param specs: all that it has.
    :raises errors.InvalidExtraSpecs: when what it promises makes no sense.
    """
    wanted = dict(placement.request(
        extra_specs.parse(specs).reservation, vcpus))
    removed = {name for name in specs
               if placement.ours(name) and name not in wanted}
    if wanted:
        # Ours is on a provider that no other group can have, so that
        # "isolate" is as good.
        wanted[GROUP_POLICY] = specs.get(GROUP_POLICY, _NO_POLICY)
    elif removed and specs.get(GROUP_POLICY) == _NO_POLICY and not any(
            _grouped(name) for name in specs.keys() - removed):
        removed.add(GROUP_POLICY)
    return Change({name: text for name, text in wanted.items()
                   if specs.get(name) != text}, frozenset(removed))


def changed(vcpus: int, specs: Mapping[str, str],
            asked: Mapping[str, str | None]) -> Change:
    """What sets some keys of our namespace, and the claim with them.

    :param asked: full names; None takes a key away.
    :raises errors.InvalidExtraSpecs: when what comes out makes no sense.
    """
    after = {name: text for name, text in specs.items()
             if asked.get(name, text) is not None}
    after.update((name, text) for name, text in asked.items()
                 if text is not None)
    claim = claiming(vcpus, after)
    return Change(
        {**{name: text for name, text in asked.items()
            if text is not None and specs.get(name) != text}, **claim.added},
        frozenset(name for name, text in asked.items()
                  if text is None and name in specs) | claim.removed)


def _grouped(name: str) -> bool:
    kind, colon, _ = name.partition(':')
    return bool(colon) and kind.startswith(('resources', 'trait')) and (
        kind not in ('resources', 'trait'))

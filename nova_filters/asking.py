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

"""What a request for instances asks of hosts."""

from collections.abc import Mapping
import functools

from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.model import fit


class Question:
    """What instances of one flavor ask of a host.

    The same object for the same flavor, and compared as an object: a host
    finds what it said before without looking at what is in it.
    """

    __slots__ = ('ask', 'asking')

    def __init__(self, ask: fit.Ask) -> None:
        self.ask = ask
        self.asking = fit.Asking(ask)


class Nonsense(Exception):
    """Extra specs that ask for nothing a host could give."""


def question(specs: Mapping[str, str] | None, vcpus: int) -> Question | None:
    """What a flavor asks of a host.

    Nova checks no rules between keys, and below microversion 2.86 nothing
    at all: what comes here may be wrong.

    :param specs: the flavor's extra specs.
    :returns: None when the flavor has nothing to do with vsched.
    :raises Nonsense: saying what is wrong.
    """
    own = tuple(sorted(
        item for item in (specs or {}).items()
        if item[0].startswith(extra_specs.PREFIX)))
    if not own:
        return None
    found = _question(own, vcpus)
    if isinstance(found, str):
        raise Nonsense(found)
    return found


# Not exceptions: those would not be remembered.
@functools.lru_cache(maxsize=1024)
def _question(own: tuple[tuple[str, str], ...],
              vcpus: int) -> Question | str:
    try:
        return Question(extra_specs.parse(dict(own)).ask(vcpus))
    except errors.InvalidExtraSpecs as problem:
        return problem.detail

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

"""One object for all that are equal.

Thousands of hosts are much alike. What they have in common is quickly
compared when it is the same object, and in the processor's cache when the
next host is asked.
"""

from collections.abc import Hashable
import functools
import typing as ty

_Value = ty.TypeVar('_Value', bound=Hashable)


def one(value: _Value) -> _Value:
    """The first of all values that are equal to this one."""
    return ty.cast(_Value, _first(value))


# Of a kind there are few; one that is forgotten is only found once more.
@functools.lru_cache(maxsize=1024, typed=True)
def _first(value: Hashable) -> Hashable:
    return value

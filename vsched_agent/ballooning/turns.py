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

"""Shorter turns on the CPUs of a guest that is told to do something.

Taking a vCPU offline, a guest's kernel has all of its vCPUs run a few steps
together (``stop_machine``), and each step waits until the last of them has
had its turn. With several busy vCPUs on a CPU that is seconds at the tick's
pace. Shorter turns cost all of them a little time and give it to nobody.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib

from oslo_log import log as logging

from vsched_agent.privileged import turns

LOG = logging.getLogger(__name__)


class Turns:
    """Has a helper pass by; what goes wrong only takes longer.

    :param turn_us: so often; 0 for never.
    """

    def __init__(self, turn_us: int) -> None:
        self._turn_us = turn_us
        self._failed = False

    def prepare(self) -> None:
        """Have the helper ready, so that nobody waits for its start."""
        if not self._turn_us or self._failed:
            return
        try:
            turns.ready()
        except Exception as failure:
            self._give_up(failure)

    @contextlib.contextmanager
    def shorter(self, tids: Sequence[int], limit_s: float) -> Iterator[None]:
        """While this is open, but not for longer than so many seconds."""
        name = self._begin(tids, limit_s)
        try:
            yield
        finally:
            if name is not None:
                try:
                    turns.end(name)
                except Exception as failure:
                    self._give_up(failure)

    def _begin(self, tids: Sequence[int], limit_s: float) -> int | None:
        if not self._turn_us or self._failed:
            return None
        try:
            return turns.begin(list(tids), self._turn_us, limit_s)
        except Exception as failure:
            self._give_up(failure)
            return None

    def _give_up(self, failure: Exception) -> None:
        self._failed = True
        LOG.warning('guests take vCPUs offline at the pace of the tick: the '
                    'helper for shorter turns does not answer: %s; see '
                    'helper_command in [%s]', failure,
                    turns.turns_pctxt.cfg_section)

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

"""What the host's work for I/O costs, as the agent's loop sees it.

Prices come from runs on purpose, which are processes of their own. What
instances show refines them into a profile apart.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import time
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_agent.profiling import prices
from vsched_agent.profiling import refining
from vsched_agent.profiling import store
from vsched_lib.contract import messages
from vsched_lib.contract import profiles as contract

LOG = logging.getLogger(__name__)

Source = contract.ProfileSource


class HostCosts:
    """Tells of new overhead profiles, and prices I/O by the newest.

    :param conf: with the agent's options.
    :param host: facts of the kernel, as in a profile.
    :param stored: this host's overhead profiles.
    """

    def __init__(self, conf: cfg.ConfigOpts, host: Mapping[str, ty.Any],
                 stored: store.Profiles[contract.OverheadProfile]) -> None:
        self._host = host
        self._store = stored
        self._seen: dict[Source, int] = {}
        self._latest: contract.OverheadProfile | None = None
        self._live = refining.LivePrices(conf.profiling.live_vcpus)
        self._interval_s = conf.profiling.live_interval
        self._due_s = time.monotonic() + self._interval_s
        self.prices = prices.Prices(lambda: self._latest, host)

    def look(self) -> list[contract.OverheadProfile]:
        """Profiles that were not seen yet."""
        found = []
        for source, version in self._store.newest().items():
            if self._seen.get(source) == version:
                continue
            self._seen[source] = version
            profile = self._store.load(source, version)
            if profile is None:
                continue
            if source is Source.BENCHMARK:
                self._latest = profile
                self._live.follow(self.prices.usable())
            found.append(profile)
        return found

    def problem(self) -> str | None:
        """Why I/O has no price; None when it has."""
        return self.prices.problem()

    def used(self, samples: Sequence[messages.UsageSample]) -> None:
        """Instances have used CPU time, and moved things."""
        self._live.look(samples)
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + self._interval_s
        try:
            profile = self._live.profile(
                self._store.next_version(Source.LIVE), self._host)
            if profile is not None:
                self._store.keep(profile)
        except OSError as problem:
            LOG.warning('refined prices are not kept: %s', problem)

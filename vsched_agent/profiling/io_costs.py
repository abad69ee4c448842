# SPDX-License-Identifier: Apache-2.0

"""What the host's work for I/O costs, for the agent's loop.

Prices come from runs on purpose, which are processes of their own. What
instances show refines them into a profile apart.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import time
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_agent.profiling import io_prices
from vsched_agent.profiling import new_profiles
from vsched_agent.profiling.passive import prices as refining
from vsched_agent.profiling import store
from vsched_lib.contract import messages
from vsched_lib.contract import profiles as contract

LOG = logging.getLogger(__name__)

Source = contract.ProfileSource


class HostCosts:
    """Reports new overhead profiles, and prices I/O by the newest.

    :param conf: with the agent's options.
    :param host: facts of the kernel, as in a profile.
    :param stored: this host's overhead profiles.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        host: Mapping[str, ty.Any],
        stored: store.Profiles[contract.OverheadProfile],
    ) -> None:
        self._host = host
        self._store = stored
        self._news = new_profiles.News(stored)
        self._live = refining.LivePrices(conf.profiling.live_vcpus)
        self._interval_s = conf.profiling.live_interval
        self._due_s = time.monotonic() + self._interval_s
        self.prices = io_prices.Prices(self._news.benchmark, host)

    def poll(self) -> list[contract.OverheadProfile]:
        """Return the profiles that were not returned yet."""
        found = [profile for profile, _ in self._news.poll()]
        if any(profile.source is Source.BENCHMARK for profile in found):
            self._live.follow(self.prices.usable())
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
                self._store.next_version(Source.LIVE), self._host
            )
            if profile is not None:
                self._store.keep(profile)
        except OSError as problem:
            LOG.warning('refined prices are not kept: %s', problem)

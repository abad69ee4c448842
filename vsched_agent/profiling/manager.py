# SPDX-License-Identifier: Apache-2.0

"""The error profiles of this host, for the agent's loop.

New ones come from runs on purpose, which are processes of their own, and
from what production shows for free.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import os
import time
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_agent.enforcement import backends
from vsched_agent.enforcement import budget_expiry
from vsched_agent.host import kernel
from vsched_agent.privileged import switches
from vsched_agent.profiling import io_costs
from vsched_agent.profiling import margins
from vsched_agent.profiling import measurements
from vsched_agent.profiling import new_profiles
from vsched_agent.profiling.passive import errors
from vsched_agent.profiling import store
from vsched_agent.profiling import withdrawal
from vsched_agent.reservations import applied
from vsched_lib.contract import certification
from vsched_lib.contract import placement
from vsched_lib.contract import policy as policies
from vsched_lib.contract import profiles as contract
from vsched_lib.model import error_change
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)


def folder(conf: cfg.ConfigOpts) -> str:
    """Where this host's profiles and unfinished runs are kept."""
    return os.path.join(conf.agent.state_path, 'profiling')


def error_profiles(
    conf: cfg.ConfigOpts,
) -> store.Profiles[contract.ErrorProfile]:
    """This host's error profiles."""
    return store.Profiles(
        contract.ErrorProfile,
        os.path.join(folder(conf), 'error'),
        conf.profiling.keep_profiles,
    )


def overhead_profiles(
    conf: cfg.ConfigOpts,
) -> store.Profiles[contract.OverheadProfile]:
    """This host's overhead profiles."""
    return store.Profiles(
        contract.OverheadProfile,
        os.path.join(folder(conf), 'overhead'),
        conf.profiling.keep_profiles,
    )


def chosen(
    stored: store.Profiles[store.Kind], command: ty.Any
) -> store.Kind | None:
    """The profile that a command line selects.

    :param command: has ``source`` and ``version``; None is the newest.
    """
    source = contract.ProfileSource(command.source)
    return (
        stored.latest(source)
        if command.version is None
        else stored.load(source, command.version)
    )


def facts(
    found: kernel.KernelFacts, conf: cfg.ConfigOpts
) -> dict[str, ty.Any]:
    """What a profile says of the kernel it was made on, and how.

    :param conf: with the agent's options.
    """
    return {
        'kernel': found.release,
        'tick_us': found.tick_us,
        'cpus': len(found.online),
        'features': {
            'options': dict(found.options),
            'hrtick_dl': found.hrtick_dl,
            'budget_check_us': backends.budget_check_us(conf),
            'fair_server': bool(found.fair_servers),
            'rt_runtime_us': found.rt_runtime_us,
            'rt_period_us': found.rt_period_us,
        },
    }


class HostProfiles:
    """Gathers samples, reports new profiles and evaluates them.

    :param conf: with the agent's options.
    :param host: facts of the kernel, see :func:`facts`.
    :param check_status: returns the state of the budget expiry checks.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        host: Mapping[str, ty.Any],
        check_status: Callable[
            [], budget_expiry.CheckStatus
        ] = budget_expiry.CheckStatus,
    ) -> None:
        options = conf.profiling
        self._check_us = int(host['features'].get('budget_check_us', 0))
        # While checks fail, budgets expire at the tick.
        host = {**host, 'features': dict(host['features'])}
        self._host = host
        self._check_status = check_status
        self._withdrawal = withdrawal.Withdrawal()
        self._confidence = options.confidence
        self._store = error_profiles(conf)
        self._news = new_profiles.News(self._store)
        self._live = errors.LiveErrors(options.live_vcpus, switches)
        self._interval_s = options.live_interval
        self._due_s = time.monotonic() + self._interval_s
        self.costs = io_costs.HostCosts(conf, host, overhead_profiles(conf))
        self.margins = margins.Margins(
            self._news.benchmark, host, options.confidence
        )
        #: What is made of that, for other modules.
        self.policy = policies.HostPolicy(
            options.confidence,
            round(options.max_margin_pct * 10_000),
            round(conf.enforcement.max_overhead_pct * 10_000),
            conf.enforcement.unpriced_io == 'refuse',
        )
        #: What decides whether the host can keep a promise.
        self.measurements = measurements.HostMeasurements(
            self.margins, self.costs.prices, self.policy.fit
        )

    def attested(self, holdings: Iterable[applied.Holding]) -> None:
        """Take samples from what is in force as it should be."""
        self._live.look(
            errors.Held(target.tid, str(held.backend), held.asked)
            for held in holdings
            if held.asked is not None
            # Linux has no counters of others.
            and held.backend in reservation.OF_LINUX
            # With a margin more is given than asked for, on purpose.
            and held.asked.runtime_us == held.now.runtime_us
            # The error of a divided period is that of another period.
            and held.granularity == 1
            for target in held.targets
        )
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + self._interval_s
        try:
            profile = self._live.profile(
                self._store.next_version(contract.ProfileSource.LIVE),
                self._host,
            )
            if profile is not None:
                self._store.keep(profile)
        except OSError as problem:
            LOG.warning('the samples of production are not kept: %s', problem)

    @property
    def budget_check_us(self) -> int:
        """How soon budgets are looked at, in effect; 0 for at the tick.

        For schedulers: an error profile that was measured with
        another value does not count.
        """
        return int(self._host['features'].get('budget_check_us', 0))

    def judge(self, now_s: float) -> withdrawal.Event | None:
        """Withdraw certificates that do not hold, and grant them again.

        :param now_s: the steady clock.
        :returns: the event to report, if any.
        """
        if not self._check_us:
            return None
        event = self._withdrawal.take(
            *self._check_status(), self._news.benchmark(), now_s
        )
        self._host['features']['budget_check_us'] = (
            0 if self._withdrawal.withdrawn else self._check_us
        )
        return event

    def close(self) -> None:
        """Look no longer at anything."""
        self._live.close()

    def certified(self) -> frozenset[str]:
        """The traits that the newest profile of this host earns."""
        profile = self._news.benchmark()
        if profile is None or certification.differences(profile, self._host):
            return frozenset()
        return placement.certified_traits(profile.points, self._confidence)

    def poll(
        self,
    ) -> list[tuple[contract.ErrorProfile, list[error_change.Change]]]:
        """Return new profiles and how each differs from the last one."""
        return [
            (
                profile,
                []
                if older is None
                else error_change.changes(older.points, profile.points),
            )
            for profile, older in self._news.poll()
        ]

    def measured(self, before: int | None) -> list[contract.ErrorProfile]:
        """Return the runs finished as of the last poll, the oldest first.

        :param before: the newest version that was reported already.
        """
        return self._news.measured(before)

# SPDX-License-Identifier: Apache-2.0

"""Makes the parts of communication awareness from the agent's options."""

from collections.abc import Callable

from oslo_config import cfg

from vsched_agent.communication import base
from vsched_agent.communication import manager
from vsched_agent.host import switches
from vsched_agent.reservations import enforcer as enforcers
from vsched_lib.model import granularity
from vsched_lib.model import reservation


def limits(conf: cfg.ConfigOpts, tick_us: int) -> granularity.Limits:
    """Return the limits of divided periods on this host.

    :param tick_us: the host's scheduler tick.
    """
    options = conf.communication
    return granularity.Limits(
        options.min_runtime_us * reservation.NS_PER_US,
        options.min_period_us * reservation.NS_PER_US,
        tick_us * reservation.NS_PER_US,
    )


def make_manager(
    conf: cfg.ConfigOpts, enforcer: enforcers.Enforcer, cpus: Callable[[], int]
) -> manager.CommunicationManager:
    """Return what divides the periods of this host's instances.

    :param cpus: returns the number of CPUs of the host.
    """
    options = conf.communication
    return manager.CommunicationManager(
        base.Settings(
            granularity.Policy(
                least_pps=options.min_packets_per_second,
                headroom=options.headroom,
                hold_s=options.hold,
                added_periods=options.max_added_periods,
            ),
            options.hold,
            options.enabled,
        ),
        enforcer,
        cpus,
        switches.SleepCounter(),
    )

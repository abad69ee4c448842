# SPDX-License-Identifier: Apache-2.0

"""Makes the synchronizer from the options."""

from oslo_config import cfg

from vsched_agent.placement import synchronizer
from vsched_lib.openstack import placement
from vsched_lib.openstack import session

GROUP = 'placement'


def configured(conf: cfg.ConfigOpts) -> bool:
    """Return whether the options say where placement is."""
    return session.configured(conf, GROUP)


def client(conf: cfg.ConfigOpts) -> placement.Placement:
    """Return a client of placement; nothing is sent yet.

    :raises session.Unavailable: when the options are not sufficient.
    """
    return placement.Placement(session.connect(conf, GROUP))


def make_synchronizer(
    conf: cfg.ConfigOpts, notify: synchronizer.Notify
) -> synchronizer.Synchronizer | None:
    """Return the synchronizer; None when placement is not configured.

    :param notify: takes events, from the synchronizer's thread.
    """
    if not configured(conf):
        return None
    return synchronizer.Synchronizer(
        lambda: client(conf), conf.placement.sync_interval, notify
    )

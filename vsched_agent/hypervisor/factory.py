# SPDX-License-Identifier: Apache-2.0

"""Create the configured driver.

Modules for one kind of hypervisor only are imported where it is in use.
"""

from collections.abc import Iterator
import contextlib
import threading

from oslo_config import cfg

from vsched_agent.conf import hypervisor as options_of
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.libvirt import driver as libvirt_driver
from vsched_agent.hypervisor.libvirt import guest_agent
from vsched_agent.hypervisor import vcpu_channel


def from_conf(conf: cfg.ConfigOpts) -> base.Hypervisor:
    """Return the driver, not started yet.

    :param conf: with the group ``hypervisor`` registered.
    """
    options = conf.hypervisor
    if options_of.is_xen(conf):
        from vsched_agent.hypervisor.xen import driver as xen_driver

        return xen_driver.XenHypervisor(
            options.uri,
            reconnect_max_s=options.reconnect_max,
            keepalive_s=options.keepalive_interval,
            call_timeout_s=options.call_timeout,
            watch_interval_s=options.watch_interval,
        )
    return libvirt_driver.LibvirtHypervisor(
        options.uri,
        run_dir=options.run_dir,
        reconnect_max_s=options.reconnect_max,
        keepalive_s=options.keepalive_interval,
        call_timeout_s=options.call_timeout,
        watch_interval_s=options.watch_interval,
        monitor_timeout_s=options.monitor_timeout,
    )


def channel_from_conf(conf: cfg.ConfigOpts) -> vcpu_channel.VcpuChannel | None:
    """Return the channel to the guests, not started yet.

    :param conf: with the group ``hypervisor`` registered.
    :returns: None for a hypervisor whose guests have none.
    """
    if options_of.is_xen(conf):
        return None
    options = conf.hypervisor
    return guest_agent.GuestAgentChannel(
        options.uri, options.keepalive_interval
    )


@contextlib.contextmanager
def once(conf: cfg.ConfigOpts) -> Iterator[base.Hypervisor]:
    """Provide a started driver for a command.

    Waits for the connection as long as for any other answer; afterwards calls
    raise HypervisorUnavailable.
    """
    driver = from_conf(conf)
    changed = threading.Event()
    driver.start(lambda _uuid: changed.set())
    try:
        changed.wait(conf.hypervisor.call_timeout)
        yield driver
    finally:
        driver.stop()

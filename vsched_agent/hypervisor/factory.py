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

"""Makes the driver that the options ask for."""

from collections.abc import Iterator
import contextlib
import threading

from oslo_config import cfg

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import channel
from vsched_agent.hypervisor import guest_channel
from vsched_agent.hypervisor import libvirt_driver


def from_conf(conf: cfg.ConfigOpts) -> base.Hypervisor:
    """The driver, not started yet.

    :param conf: with the group ``hypervisor`` registered.
    """
    options = conf.hypervisor
    return libvirt_driver.LibvirtHypervisor(
        options.uri, run_dir=options.run_dir,
        reconnect_max_s=options.reconnect_max,
        keepalive_s=options.keepalive_interval,
        call_timeout_s=options.call_timeout,
        watch_interval_s=options.watch_interval,
        monitor_timeout_s=options.monitor_timeout)


def channel_from_conf(conf: cfg.ConfigOpts) -> channel.VcpuChannel:
    """The way to the guests, not started yet.

    :param conf: with the group ``hypervisor`` registered.
    """
    options = conf.hypervisor
    return guest_channel.GuestAgentChannel(
        options.uri, options.keepalive_interval)


@contextlib.contextmanager
def once(conf: cfg.ConfigOpts) -> Iterator[base.Hypervisor]:
    """The driver for a command that asks and ends.

    Waits as long for the connection as for any other answer; whoever asks
    then is told that the hypervisor is unavailable.
    """
    driver = from_conf(conf)
    changed = threading.Event()
    driver.start(lambda _uuid: changed.set())
    try:
        changed.wait(conf.hypervisor.call_timeout)
        yield driver
    finally:
        driver.stop()

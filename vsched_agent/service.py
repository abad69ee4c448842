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

"""Puts the agent together, and takes it apart again."""

import platform
import threading
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service.backend import base as service_base
import pbr.version

from vsched_agent.accounting import usage
from vsched_agent import balloons
from vsched_agent import charging
from vsched_agent.conf import placement as placement_conf
from vsched_agent import endpoint
from vsched_agent.enforcement import capacity
from vsched_agent.enforcement import kernel
from vsched_agent.enforcement import ladder
from vsched_agent import enforcer
from vsched_agent.hypervisor import base as hypervisor_base
from vsched_agent.hypervisor import channel as channels
from vsched_agent.hypervisor import factory
from vsched_agent import orders
from vsched_agent.placement import desired
from vsched_agent.placement import factory as placement_factory
from vsched_agent import privileged
from vsched_agent import profiles
from vsched_agent.profiling import jobs
from vsched_agent import reconciler
from vsched_agent import reporter
from vsched_agent import state
from vsched_lib.contract import messages
from vsched_lib.contract import placement as names
from vsched_lib.contract import rpc
from vsched_lib.model import admission
from vsched_lib.model import charging as model
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

#: How long a new agent waits for what is left of a killed one.
TAKEOVER_S = 10.0
#: How long a stopping agent waits for a bus that may be away.
BUS_LEAVE_S = 5.0


class Agent(service_base.ServiceBase):
    """Everything one compute node needs.

    :param conf: with the agent's options registered.
    :param transport: the bus; made from ``transport_url`` when None.
    :param hypervisor: the driver; libvirt's when None.
    :param channel: the way to the guests; libvirt's when None and the
        driver is libvirt's, else there is no ballooning.
    """

    def __init__(self, conf: cfg.ConfigOpts, transport: ty.Any = None,
                 hypervisor: hypervisor_base.Hypervisor | None = None,
                 channel: channels.VcpuChannel | None = None) -> None:
        self._conf = conf
        self._transport = transport
        self._hypervisor = hypervisor
        self._channel = channel
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin to enforce; returns when every thread runs.

        Nothing is opened before this, so that the object may be made
        before a fork.
        """
        conf = self._conf.agent
        privileged.use(self._conf)
        self._state = state.open_state(conf.state_path, TAKEOVER_S)
        transport = self._transport or rpc.get_transport(self._conf)
        self._kernel = kernel.KernelFacts.read()
        self._ladder = ladder.Ladder(self._conf)
        self._capacity = capacity.KernelCapacity(
            reserve_mcpu=conf.reserve_mcpu + ladder.reserve_mcpu(
                self._conf))
        self._driver = self._hypervisor or factory.from_conf(self._conf)
        self._profiles = profiles.HostProfiles(
            self._conf, profiles.facts(self._kernel, self._conf))
        self._enforcer = enforcer.Enforcer(
            self._ladder.backends, self._ladder.support, self._capacity,
            self._state.journal, admission.Test(conf.admission_test),
            conf.on_refusal == 'degrade', self._kernel.tick_us,
            self._profiles.measurements)
        charged = self._conf.charging
        self._charging = charging.Charging(charging.Settings(
            model.IoPolicy(charged.headroom, charged.window,
                           charged.floor_mcpu / reservation.MCPU_PER_CPU),
            charged.period_us, self._kernel.tick_us, charged.enabled),
            self._enforcer)
        self._meter = usage.meter_of(self._driver, self._kernel.irq_time)
        self._balloons = self._make_balloons()
        self._reconciler = reconciler.Reconciler(
            reconciler.Settings(
                conf.host, conf.interval, conf.full_sync_interval,
                conf.report_interval, conf.outbox_batches),
            self._driver, self._enforcer, self._state.journal, self._meter,
            self._host_info, lambda: self._reporter.poke(), self._profiles,
            self._charging, self._profiles.costs, self._balloons)
        self._keeper = placement_factory.keeper(
            self._conf, self._reconciler.event)
        self._jobs = jobs.Jobs(
            orders.command(self._conf), orders.arguments,
            self._reconciler.job)
        self._reporter = reporter.Reporter(
            conf.host, self._state.journal, rpc.CollectorClient(transport),
            self._ordered, self._reconciler.resync,
            self._jobs.take)
        self._server = rpc.get_server(
            transport, rpc.AGENT_TOPIC, conf.host,
            [endpoint.Endpoint(self._reporter.fetch_overrides,
                               self._reporter.fetch_jobs)])
        if self._balloons is not None:
            self._balloons.start()
        self._driver.start(self._changed)
        self._reconciler.start()
        self._jobs.start()
        if self._keeper is not None:
            self._keeper.start()
        self._reporter.start()
        # Last, and on its own thread: a bus that is away must not delay
        # enforcement.
        self._bus = threading.Thread(
            target=self._server.start, name='vsched-bus', daemon=True)
        self._bus.start()
        LOG.info('vsched agent of %s runs', conf.host)

    def stop(self, graceful: bool = True) -> None:
        """Stop; the kernel keeps the promises unless told otherwise."""
        self._reporter.stop()
        if self._keeper is not None:
            self._keeper.stop()
        self._jobs.stop()
        if self._balloons is not None:
            # Reservations move with vCPUs, so the loop must still run.
            self._balloons.stop()
        self._reconciler.stop()
        self._profiles.close()
        if self._conf.agent.restore_on_stop:
            self.restore()
        for backend in self._ladder.backends.values():
            backend.close()
        self._driver.stop()
        self._meter.close()
        self._state.close()
        self._leave_bus()
        self._stopped.set()

    def _make_balloons(self) -> balloons.Balloons | None:
        channel = self._channel
        if channel is None and self._hypervisor is None:
            channel = factory.channel_from_conf(self._conf)
        if channel is None or self._conf.ballooning.mode == 'off':
            return None
        return balloons.Balloons(
            self._conf, channel, self._state.journal, self._meter,
            lambda *told: self._reconciler.event(*told),
            lambda told: self._reconciler.balloon(told),
            lambda uuid: self._reconciler.changed(uuid))

    def _ordered(self, overrides: messages.Overrides) -> None:
        self._reconciler.set_overrides(overrides)
        if self._balloons is not None:
            self._balloons.order(overrides.balloons)

    def _changed(self, uuid: str | None) -> None:
        self._reconciler.changed(uuid)
        if self._balloons is not None:
            self._balloons.changed(uuid)

    def _leave_bus(self) -> None:
        if self._bus.is_alive():
            # It never got there; the thread ends with the process.
            return

        def leave() -> None:
            self._server.stop()
            self._server.wait()

        leaving = threading.Thread(
            target=leave, name='vsched-bus-leave', daemon=True)
        leaving.start()
        leaving.join(BUS_LEAVE_S)
        if leaving.is_alive():
            LOG.warning('the bus does not let go; it is left behind')

    def wait(self) -> None:
        """Until the agent was stopped."""
        self._stopped.wait()

    def reset(self) -> None:
        """The configuration was read again."""

    def restore(self) -> None:
        """Put every thread and cgroup back as found."""
        state.restore_all(self._enforcer, self._driver, self._state.journal)

    def _host_info(self) -> messages.HostInfo:
        current = self._capacity.current()
        leaked_mcpu = self._capacity.measured().leaked_mcpu
        supports = {name: self._ladder.support(name)
                    for name in self._ladder.backends}
        placed = names.PlacementInfo(names.PlacementState.OFF)
        if self._keeper is not None:
            self._keeper.want(desired.Desired(
                placement_conf.compute_name(self._conf),
                current.capacity_mcpu, current.reserve_mcpu,
                desired.traits(
                    (str(name) for name, support in supports.items()
                     if support.usable), self._profiles.certified(),
                    balloon=self._balloons is not None),
                self._enforcer.held_mcpu()))
            placed = self._keeper.info()
        return messages.HostInfo(
            agent_version=pbr.version.VersionInfo(
                'vsched').version_string(),
            kernel=platform.release(), boot_id=self._kernel.boot_id,
            hypervisor=self._driver.kind, cpus=current.cpus,
            tick_us=self._kernel.tick_us,
            capacity_mcpu=current.capacity_mcpu,
            admitted_mcpu=self._enforcer.admitted_mcpu(),
            reserve_mcpu=current.reserve_mcpu, leaked_mcpu=leaked_mcpu,
            backends=tuple(
                messages.BackendInfo(
                    str(name), support.usable, tuple(support.reasons))
                for name, support in supports.items()),
            placement=placed, policy=self._profiles.policy,
            budget_check_us=ladder.budget_check_us(self._conf))

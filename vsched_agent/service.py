# SPDX-License-Identifier: Apache-2.0

"""Composes the agent, starts and stops it."""

from collections.abc import Callable
from collections.abc import Iterator
import functools
import platform
import threading
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service.backend import base as service_base
import pbr.version

from vsched_agent.accounting import usage
from vsched_agent.ballooning import manager
from vsched_agent.communication import factory as communication
from vsched_agent.conf import bus as bus_conf
from vsched_agent.conf import placement as placement_conf
from vsched_agent.enforcement import affinity
from vsched_agent.enforcement import backends
from vsched_agent.enforcement import doctor
from vsched_agent.host import kernel
from vsched_agent.hypervisor import base as hypervisor_base
from vsched_agent.hypervisor import factory
from vsched_agent.hypervisor import vcpu_channel as channels
from vsched_agent.metrics import recorder
from vsched_agent.placement import factory as placement_factory
from vsched_agent.placement import inventory
from vsched_agent import privileged
from vsched_agent.profiling import job_orders
from vsched_agent.profiling import jobs
from vsched_agent.profiling import manager as profiles
from vsched_agent.reconciliation import reconciler
from vsched_agent.reporting import collector_session
from vsched_agent.reporting import events
from vsched_agent.reporting import findings
from vsched_agent.reporting import unrestored
from vsched_agent.reservations import enforcer
from vsched_agent.reservations import io_charging
from vsched_agent.state import directory
from vsched_lib.contract import agent_rpc
from vsched_lib.contract import collector_replies
from vsched_lib.contract import messages
from vsched_lib.contract import placement as names
from vsched_lib.contract import rpc
from vsched_lib.metrics import server
from vsched_lib.model import admission
from vsched_lib.model import charging as model
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

#: How long a new agent waits for the children of a killed one, in seconds.
TAKEOVER_S = 10.0
#: How long a stopping agent waits for its RPC server, in seconds.
RPC_STOP_TIMEOUT_S = 5.0


class Agent(service_base.ServiceBase):
    """The agent of one compute node.

    :param conf: with the agent's options registered.
    :param transport: of the bus; made from ``transport_url`` when None.
    :param hypervisor: the driver; libvirt's when None.
    :param channel: to the guests' vCPUs; libvirt's when None and the driver
        is libvirt's, otherwise there is no ballooning.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        transport: ty.Any = None,
        hypervisor: hypervisor_base.Hypervisor | None = None,
        channel: channels.VcpuChannel | None = None,
    ) -> None:
        self._conf = conf
        self._transport = transport
        self._hypervisor = hypervisor
        self._channel = channel
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start all threads; return when they run.

        Nothing is opened before this, so that the object may be created
        before a fork.
        """
        conf = self._conf.agent
        privileged.use(self._conf)
        self._state = directory.open_state(conf.state_path, TAKEOVER_S)
        transport = self._transport or rpc.get_transport(self._conf)
        self._kernel = kernel.KernelFacts.read()
        self._ladder = backends.Ladder(self._conf)
        self._capacity, replacing = backends.capacity_of(
            self._conf,
            self._ladder.backends,
            conf.reserve_mcpu + backends.reserve_mcpu(self._conf),
        )
        self._driver = self._hypervisor or factory.from_conf(self._conf)
        self._profiles = profiles.HostProfiles(
            self._conf,
            profiles.facts(self._kernel, self._conf),
            self._ladder.check_status,
        )
        self._enforcer = enforcer.Enforcer(
            self._ladder.backends,
            self._ladder.support,
            self._capacity,
            self._state.journal,
            admission.Test(conf.admission_test),
            conf.on_refusal == 'degrade',
            self._kernel.tick_us,
            self._profiles.measurements,
            affinity.Affinity(),
            communication.limits(self._conf, self._kernel.tick_us),
            replacing,
        )
        charged = self._conf.charging
        self._charging = io_charging.Charging(
            io_charging.Settings(
                model.IoPolicy(
                    charged.headroom,
                    charged.window,
                    charged.floor_mcpu / reservation.MCPU_PER_CPU,
                ),
                charged.period_us,
                self._kernel.tick_us,
                charged.enabled,
            ),
            self._enforcer,
        )
        self._meter = usage.meter_of(
            self._driver, self._kernel.irq_time, self._kernel.boot_id
        )
        self._balloons = self._make_balloons()
        self._recorder = recorder.Recorder(
            self._state.journal.outbox.waiting, conf.metrics_per_instance
        )
        self._metrics_server = server.Server(
            server.Settings.of(self._conf, 'agent'), self._recorder.exposed()
        )
        self._reconciler = reconciler.Reconciler(
            reconciler.Settings(
                conf.host,
                conf.interval,
                conf.full_sync_interval,
                conf.report_interval,
                conf.outbox_batches,
            ),
            self._driver,
            self._enforcer,
            self._state.journal,
            self._meter,
            self._host_info,
            self._profiles,
            self._charging,
            self._profiles.costs,
            self._balloons,
            lambda: self._reporter.fetch_overrides(),
            communication.make_manager(
                self._conf,
                self._enforcer,
                lambda: self._capacity.current().cpus,
            ),
            self._recorder if conf.metrics_bind_port else None,
        )
        self._synchronizer = placement_factory.make_synchronizer(
            self._conf, self._reconciler.event
        )
        self._jobs = jobs.Jobs(
            job_orders.command(self._conf),
            job_orders.arguments,
            self._reconciler.job,
        )
        self._reporter = collector_session.Reporter(
            conf.host,
            self._state.journal,
            bus_conf.collector_client(
                self._conf, transport, lambda: self._state.journal.outbox.epoch
            ),
            self._set_overrides,
            self._reconciler.resync,
            self._jobs.take,
        )
        self._server = rpc.get_server(
            transport, agent_rpc.TOPIC, conf.host, [self._reporter]
        )
        self._findings = findings.Findings(
            findings.checks_of(self._conf, self._kernel)
        )
        if self._balloons is not None:
            self._balloons.start()
        self._start_metrics()
        self._findings.start()
        self._driver.start(self._changed)
        self._reconciler.start()
        self._jobs.start()
        if self._synchronizer is not None:
            self._synchronizer.start()
        self._reporter.start()
        # Last, and on its own thread: an unavailable bus must not delay
        # enforcement.
        self._bus = threading.Thread(
            target=self._server.start, name='vsched-bus', daemon=True
        )
        self._bus.start()
        LOG.info('vsched agent of %s runs', conf.host)

    @property
    def metrics_port(self) -> int:
        """Return the port on which metrics are served; 0 if they are not."""
        return self._metrics_server.port

    def stop(self, graceful: bool = True) -> None:
        """Stop; reservations stay in force unless configured otherwise."""
        for step in self._stop_steps():
            try:
                step()
            except Exception:
                # A failure must not keep the other parts from stopping.
                LOG.exception('stopping a part of the agent failed')
        self._stopped.set()

    def _start_metrics(self) -> None:
        try:
            self._metrics_server.start()
        except server.UnusableEndpoint as problem:
            # Reservations do not depend on it.
            LOG.error('%s', problem.detail)

    def _stop_steps(self) -> Iterator[Callable[[], object]]:
        yield self._metrics_server.stop
        yield self._findings.stop
        yield self._reporter.stop
        if self._synchronizer is not None:
            yield self._synchronizer.stop
        yield self._jobs.stop
        if self._balloons is not None:
            # Giving vCPUs back changes reservations: the loop has to run.
            yield self._balloons.stop
        yield self._reconciler.stop
        yield self._profiles.close
        if self._conf.agent.restore_on_stop:
            yield self.restore
        for backend in self._ladder.backends.values():
            yield backend.close
        yield self._driver.stop
        yield self._meter.close
        yield self._state.close
        yield self._stop_rpc_server

    def _make_balloons(self) -> manager.BalloonManager | None:
        channel = self._channel
        if channel is None and self._hypervisor is None:
            channel = factory.channel_from_conf(self._conf)
        if channel is None or self._conf.ballooning.mode == 'off':
            return None
        return manager.BalloonManager(
            self._conf,
            channel,
            self._state.journal,
            self._meter,
            lambda *event: self._reconciler.event(*event),
            lambda report: self._reconciler.balloon(report),
            lambda uuid: self._reconciler.changed(uuid),
        )

    def _set_overrides(self, overrides: collector_replies.Overrides) -> None:
        self._reconciler.set_overrides(overrides)
        if self._balloons is not None:
            self._balloons.order(overrides.balloons)

    def _changed(self, uuid: str | None) -> None:
        self._reconciler.changed(uuid)
        if self._balloons is not None:
            self._balloons.changed(uuid)

    def _stop_rpc_server(self) -> None:
        if self._bus.is_alive():
            # Never connected; the thread ends with the process.
            return

        def stop() -> None:
            self._server.stop()
            self._server.wait()

        stopping = threading.Thread(
            target=stop, name='vsched-bus-stop', daemon=True
        )
        stopping.start()
        stopping.join(RPC_STOP_TIMEOUT_S)
        if stopping.is_alive():
            LOG.warning(
                'RPC server did not stop within %g s', RPC_STOP_TIMEOUT_S
            )

    def wait(self) -> None:
        """Wait until the agent is stopped."""
        self._stopped.wait()

    def reset(self) -> None:
        """Do nothing: options are read at start only."""

    def restore(self) -> None:
        """Restore every thread and cgroup to its prior state."""
        waiting = events.Events()
        try:
            for problem in directory.restore_all(
                self._enforcer,
                self._driver,
                self._state.journal,
                functools.partial(unrestored.add, waiting),
            ).problems:
                LOG.error('%s', problem)
        finally:
            unrestored.post(
                waiting, self._conf.agent.host, self._state.journal
            )

    def _host_info(self) -> messages.HostInfo:
        current = self._capacity.current()
        leaked_mcpu = self._capacity.measured().leaked_mcpu
        supports = {
            name: self._ladder.support(name) for name in self._ladder.backends
        }
        placed = names.PlacementInfo(names.PlacementState.OFF)
        if self._synchronizer is not None:
            self._synchronizer.set_desired(
                inventory.Desired(
                    placement_conf.compute_name(self._conf),
                    current.capacity_mcpu,
                    current.reserve_mcpu,
                    inventory.traits(
                        (
                            str(name)
                            for name, support in supports.items()
                            if support.usable
                        ),
                        self._profiles.certified(),
                        balloon=self._balloons is not None,
                    ),
                    self._enforcer.held_mcpu(),
                )
            )
            placed = self._synchronizer.info()
        return messages.HostInfo(
            agent_version=pbr.version.VersionInfo('vsched').version_string(),
            kernel=platform.release(),
            boot_id=self._kernel.boot_id,
            hypervisor=self._driver.kind,
            cpus=current.cpus,
            tick_us=self._kernel.tick_us,
            capacity_mcpu=current.capacity_mcpu,
            admitted_mcpu=self._enforcer.admitted_mcpu(),
            reserve_mcpu=current.reserve_mcpu,
            leaked_mcpu=leaked_mcpu,
            backends=tuple(
                messages.BackendInfo(
                    str(name), support.usable, tuple(support.reasons)
                )
                for name, support in supports.items()
            ),
            placement=placed,
            policy=self._profiles.policy,
            budget_check_us=self._profiles.budget_check_us,
            findings=self._findings.reported(
                doctor.backend_finding(name, support)
                for name, support in supports.items()
            ),
        )

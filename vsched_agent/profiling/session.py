# SPDX-License-Identifier: Apache-2.0

"""Brings together what a run needs: probes, backends and the host's books."""

from collections.abc import Callable
from collections.abc import Sequence
import math
import threading

from oslo_config import cfg

from vsched_agent.accounting import disk
from vsched_agent.accounting import host
from vsched_agent.accounting import network
from vsched_agent.accounting import readers
from vsched_agent.accounting import usage
from vsched_agent.enforcement import backends
from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement import capacity
from vsched_agent.host import cgroup
from vsched_agent.host import kernel
from vsched_agent.hypervisor import base
from vsched_agent.profiling import checkpoint
from vsched_agent.profiling.error import clocks
from vsched_agent.profiling.error import plan
from vsched_agent.profiling.error import probes
from vsched_agent.profiling.error import runner
from vsched_agent.profiling import manager
from vsched_agent.profiling.overhead import loads
from vsched_agent.profiling.overhead import pricing
from vsched_agent.profiling.overhead import stage
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import error
from vsched_lib.model import reservation


class ErrorMeasurement:
    """This host, ready to be measured.

    :param conf: with the agent's options.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._rungs = backends.Ladder(conf)
        self._books = capacity.KernelCapacity(
            reserve_mcpu=conf.agent.reserve_mcpu + backends.reserve_mcpu(conf)
        )
        facts = kernel.KernelFacts.read()
        self.cpus = len(facts.online)
        self.host = runner.Host(
            self._free_ppm,
            manager.facts(facts, conf),
            clocks.best(),
            self._stolen_ppm,
        )
        self._meter = host.HostMeter()

    @property
    def usable(self) -> Sequence[reservation.Backend]:
        """The backends that can be measured here."""
        return [
            name
            for name in self._rungs.backends
            if self._rungs.support(name).usable
        ]

    def slots(
        self, order: plan.Order
    ) -> tuple[list[tuple[plan.Task, ...]], list[plan.Task]]:
        """What would be measured at once, and what has no room now."""
        return plan.slots(
            plan.tasks(order),
            1 if order.in_guest else self.cpus,
            self.host.free_ppm(),
        )

    def probes(self, order: plan.Order) -> runner.Probes:
        """What is given the shares.

        :raises errors.VschedError: when it can not be made here.
        """
        options = self._conf.profiling
        if order.in_guest:
            return probes.Calibration(
                options.guest_kernel,
                options.guest_initrd,
                self._conf.hypervisor.uri,
                manager.folder(self._conf),
                self._conf.hypervisor.run_dir,
                options.guest_virt_type,
            )
        mount = cgroup.Cgroups().mount('cpu')
        return probes.Threads(mount.point if mount else None)

    def runner(
        self,
        order: plan.Order,
        kept: checkpoint.RunFile,
        stopping: threading.Event,
        on_progress: Callable[[int, str], None],
        granted: Callable[
            [plan.Task], reservation.Reservation
        ] = lambda task: task.promise,
    ) -> runner.Runner:
        """A run of an order.

        :param granted: what is put in force for a task; errors are reckoned
            against the task's own promise.
        """

        def enforce(task: plan.Task, tid: int) -> None:
            promise = granted(task)
            problems = promise.problems(
                task.backend, self.host.facts['tick_us']
            )
            if problems:
                raise errors.Refused(
                    '; '.join(problems), errors.Code.RESERVATION_INVALID
                )
            self._rungs.backends[task.backend].apply_each(
                [(enforcement.Target(0, tid), promise)]
            )

        return runner.Runner(
            order,
            self.host,
            self.probes(order),
            enforce,
            kept,
            stopping,
            on_progress,
        )

    def _stolen_ppm(self) -> int | None:
        read = self._meter.read()
        if read is None or not read.cpus or not read.interval_us:
            return None
        return round(
            error.PPM * read.steal_us / (read.cpus * read.interval_us)
        )

    def _free_ppm(self) -> int:
        # Asked for anew: reservations come and go while a run lasts.
        self._books.invalidate()
        current = self._books.current()
        held_mcpu = math.ceil(
            self._books.measured().live_units
            * reservation.MCPU_PER_CPU
            / (1 << reservation.KERNEL_BW_SHIFT)
        )
        return max(0, current.capacity_mcpu - held_mcpu) * (
            error.PPM // reservation.MCPU_PER_CPU
        )


class OverheadMeasurement:
    """This host, ready to be asked what its work for I/O costs.

    :param conf: with the agent's options.
    :param quick: a short run.
    :param guests: how many calibration VMs.
    """

    def __init__(
        self, conf: cfg.ConfigOpts, quick: bool = False, guests: int = 1
    ) -> None:
        options = conf.profiling
        own = kernel.KernelFacts.read()
        self.plan = loads.QUICK if quick else loads.FULL
        self.facts = manager.facts(own, conf)
        self._quick = quick
        folder = manager.folder(conf)
        self.stage = stage.Stage(
            stage.Props(
                options.guest_kernel,
                options.guest_initrd,
                conf.hypervisor.uri,
                conf.hypervisor.run_dir,
                folder,
                options.disk_folder or folder,
                options.guest_virt_type,
            ),
            guests,
        )
        self._meter = usage.UsageMeter(
            readers.of_kind('qemu'),
            host.HostMeter(irq_time=own.irq_time),
            network.PacketMeter(),
            disk.RequestMeter(
                disk.BlockingPoller(self.stage.disk_counters), 0
            ),
        )

    def meter(
        self, domains: Sequence[base.Domain]
    ) -> Sequence[messages.UsageSample]:
        """What the VMs used since this was last asked."""
        return self._meter.sample(domains, {})

    def run(
        self,
        kept: checkpoint.RunFile,
        stopping: threading.Event,
        on_progress: Callable[[int, str], None],
    ) -> pricing.PricingRun:
        """A run of the plan."""
        return pricing.PricingRun(
            self.plan,
            self.facts,
            self.stage,
            self.meter,
            kept,
            stopping,
            on_progress,
            self._quick,
        )

    def close(self) -> None:
        """Let go of what the meter holds."""
        self._meter.close()

# SPDX-License-Identifier: Apache-2.0

"""One agent in a process of its own, and what it cost.

``python -m benchmarks.agent_process '{"vms": 50, ...}'`` runs the real
service for a while and prints one JSON object. The collector, the virtual
machines and whoever measures are other processes, so that what this one
uses is the agent's.
"""

import cProfile
import dataclasses
from fractions import Fraction
import json
import os
import pathlib
import pstats
import resource
import signal
import sys
import tempfile
import threading
import time
import typing as ty
from unittest import mock

from oslo_config import cfg
from oslo_service import backend

# oslo.service chooses eventlet unless told before its first use.
backend.init_backend(backend.BackendType.THREADING)

from benchmarks import process_family  # noqa: E402
from vsched_agent import conf as agent_conf  # noqa: E402
from vsched_agent.enforcement import backends  # noqa: E402
from vsched_agent.enforcement import base  # noqa: E402
from vsched_agent.enforcement import capacity  # noqa: E402
from vsched_agent.enforcement import deadline  # noqa: E402
from vsched_agent.hypervisor import base as hypervisor_base  # noqa: E402
from vsched_agent.reconciliation import reconciler  # noqa: E402
from vsched_agent import service  # noqa: E402
from vsched_agent.tests import simulated  # noqa: E402
from vsched_lib.contract import extra_specs  # noqa: E402
from vsched_lib.contract import messages  # noqa: E402
from vsched_lib.contract import rpc  # noqa: E402
from vsched_lib.model import host  # noqa: E402
from vsched_lib.model import reservation  # noqa: E402
from vsched_lib.tests import bus_keys  # noqa: E402

#: The measurement is given up.
OVER = threading.Event()

#: Of a host that can promise anything, and has no more than a report may say.
_CPUS = 1_000

PHASES = ('observe', 'plan', 'attest', 'account', 'report')


@dataclasses.dataclass(frozen=True)
class Task:
    """What to run.

    :param kind: ``deadline``: simulated VMs, their threads really under
        SCHED_DEADLINE. ``observed``: the same, but the kernel is only asked
        and never told, so that more of them fit than its CPUs. ``libvirt``:
        the VMs that run there.
    :param vms: how many to simulate, or to expect.
    :param vcpus: of each.
    :param seconds: to measure.
    :param transport_url: the bus.
    :param profile: say which functions took the time; slows it down.
    :param metrics_port: where its metrics are served; 0 for nowhere.
    """

    kind: str
    vms: int
    vcpus: int
    seconds: float
    transport_url: str
    uri: str = 'qemu:///system'
    profile: bool = False
    metrics_port: int = 0


class Observed(deadline.DeadlineBackend):
    """Asks the kernel about every thread, and changes nothing there.

    What was applied counts as in force.
    """

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[int, base.Enforced] = {}

    def supports(self) -> base.Support:
        """Return that it works on any host."""
        return base.Support(True)

    def apply_each(self, assignments: ty.Sequence[base.Assignment]) -> None:
        """Remember what is to be in force, of vCPUs and of I/O threads."""
        for target, reserved in assignments:
            self._told[target.tid] = base.Enforced.of(reserved)

    def resume(self, assignments: ty.Sequence[base.Assignment]) -> None:
        """Do nothing: no thread runs under a budget."""

    def read(
        self, targets: ty.Sequence[base.Target]
    ) -> dict[int, base.Enforced | None]:
        """Ask the kernel about each thread; return what was applied."""
        return {tid: self._told.get(tid) for tid in super().read(targets)}

    def restore(
        self,
        targets: ty.Sequence[base.Target],
        prior: ty.Mapping[int, base.Prior],
    ) -> None:
        """Forget what was applied."""
        for target in targets:
            self._told.pop(target.tid, None)


class Boundless(capacity.KernelCapacity):
    """A host that can promise anything."""

    def current(self) -> host.Capacity:
        return host.Capacity(_CPUS, Fraction(_CPUS))


class Clocked(reconciler.Reconciler):
    """Counts the CPU time that each part of a pass takes."""

    def __init__(self, *arguments: ty.Any, **named: ty.Any) -> None:
        super().__init__(*arguments, **named)
        self.spent_ns = dict.fromkeys(PHASES, 0)
        self.passes = 0
        self.profiler: cProfile.Profile | None = None
        meter = self._accounts._meter
        sample = meter.sample
        meter.sample = (  # type: ignore[method-assign]
            lambda *given: self._clock('account', sample, *given)
        )

    def run_pass(self, due: bool = True) -> None:
        if self.profiler is None:
            super().run_pass(due)
        else:
            self.profiler.runcall(super().run_pass, due)
        self.passes += due

    def _clock(
        self, phase: str, work: ty.Callable[..., ty.Any], *given: ty.Any
    ) -> ty.Any:
        began_ns = time.thread_time_ns()
        try:
            return work(*given)
        finally:
            self.spent_ns[phase] += time.thread_time_ns() - began_ns

    def _observe(self) -> None:
        self._clock('observe', super()._observe)

    def _plan(self) -> None:
        self._clock('plan', super()._plan)

    def _attest(self) -> None:
        self._clock('attest', super()._attest)

    def _report(self) -> None:
        self._clock('report', super()._report)


def _promise(task: Task) -> reservation.Reservation:
    """As much as 1.6 CPUs allow, above what builds up debt."""
    share = min(Fraction(1, 100), Fraction(8, 5) / (task.vms * task.vcpus))
    return reservation.Reservation(max(90, int(20_000 * share)), 20_000)


def _hypervisor(task: Task) -> simulated.SimulatedHypervisor | None:
    if task.kind == 'libvirt':
        return None
    made = simulated.SimulatedHypervisor.with_real_threads()
    made.populate(task.vms, task.vcpus, extra_specs.render(_promise(task)))
    return made


def _agent(
    task: Task, folder: str, hypervisor: hypervisor_base.Hypervisor | None
) -> service.Agent:
    conf = cfg.ConfigOpts()
    agent_conf.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override('state_path', folder, group='agent')
    conf.set_override('host', 'bench', group='agent')
    conf.set_override('uri', task.uri, group='hypervisor')
    conf.set_override('metrics_bind_port', task.metrics_port, group='agent')
    if task.kind == 'libvirt':
        conf.set_override('restore_on_stop', True, group='agent')
    # For the life of this process: the service makes its own parts.
    mock.patch(
        'vsched_agent.reconciliation.reconciler.Reconciler', Clocked
    ).start()
    if task.kind == 'observed':
        made = backends.Ladder(conf, [Observed()])
        mock.patch(
            'vsched_agent.enforcement.backends.Ladder', lambda conf: made
        ).start()
        mock.patch(
            'vsched_agent.enforcement.capacity.KernelCapacity', Boundless
        ).start()
    conf.set_override(
        'key_file',
        bus_keys.write(folder, 'host.key', bus_keys.key('bench').render()),
        group='bus',
    )
    return service.Agent(
        conf, rpc.get_transport(conf, task.transport_url), hypervisor
    )


def _settle(agent: service.Agent, task: Task) -> float:
    """Wait until every reservation is held; returns seconds."""
    began = time.monotonic()
    while True:
        said = agent._state.journal.reservations().values()
        held = [one for one in said if one.state is messages.State.APPLIED]
        if len(held) >= task.vms:
            return time.monotonic() - began
        if time.monotonic() - began > 60 + task.vms / 10:
            raise RuntimeError(
                '%d of %d held; %s'
                % (
                    len(held),
                    task.vms,
                    sorted({str(one.detail) for one in said}),
                )
            )
        _wait(0.25)


def _wait(seconds: float) -> None:
    if OVER.wait(seconds):
        raise SystemExit('given up')


def _watch_input() -> None:
    sys.stdin.read()
    OVER.set()


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _measure(agent: service.Agent, task: Task) -> dict[str, ty.Any]:
    loop = ty.cast(Clocked, agent._reconciler)
    if task.profile:
        loop.profiler = cProfile.Profile()
    # Past the first batches, which tell everything.
    _wait(6)
    helpers = process_family.use(process_family.descendants(os.getpid()))
    cpu_s, began = _cpu_s(), time.monotonic()
    spent_ns, passes = dict(loop.spent_ns), loop.passes
    _wait(task.seconds)
    elapsed_s = time.monotonic() - began
    used_s, done = _cpu_s() - cpu_s, loop.passes - passes
    # The same processes: one that came meanwhile counts from its begin on.
    after = process_family.use(process_family.descendants(os.getpid()))
    helpers_s = max(0.0, after.cpu_s - helpers.cpu_s)
    own = process_family.use((os.getpid(),))
    parts = {
        name: (loop.spent_ns[name] - spent_ns[name]) / 1e6 / done
        for name in PHASES
    }
    whole = used_s * 1e3 / done
    figures: dict[str, ty.Any] = {
        'core_pct': round(100 * used_s / elapsed_s, 4),
        'helpers_core_pct': round(100 * helpers_s / elapsed_s, 4),
        'with_helpers_core_pct': round(
            100 * (used_s + helpers_s) / elapsed_s, 4
        ),
        'helpers': len(after.pids),
        'pass_ms': round(whole, 4),
        'helpers_ms': round(helpers_s * 1e3 / done, 4),
        'with_helpers_pass_ms': round(whole + helpers_s * 1e3 / done, 4),
        'passes': done,
        'pss_mib': round(own.pss_mib, 1),
        'with_helpers_pss_mib': round(own.pss_mib + after.pss_mib, 1),
        'rss_mib': round(own.rss_mib, 1),
        'with_helpers_rss_mib': round(own.rss_mib + after.rss_mib, 1),
        **{name + '_ms': round(part, 4) for name, part in parts.items()},
        'bus_ms': round(whole - sum(parts.values()), 4),
    }
    if loop.profiler is not None:
        figures['dominated_by'] = _dominated_by(loop.profiler)
    return figures


def _dominated_by(profiler: cProfile.Profile) -> list[list[ty.Any]]:
    """The functions with the most time of their own, in percent."""
    table = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    total = sum(row[2] for row in table.values())
    rows = sorted(table.items(), key=lambda item: -item[1][2])[:8]
    return [
        [_name(*where), round(100 * row[2] / total, 1)] for where, row in rows
    ]


def _name(path: str, _line: int, function: str) -> str:
    if path == '~':
        return function
    return '%s:%s' % (pathlib.Path(path).name, function)


def main() -> int:
    """Run the task that the argument describes."""
    task = Task(**json.loads(sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda *_: OVER.set())
    threading.Thread(target=_watch_input, daemon=True).start()
    # As the command does: one file a vCPU stays open.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory(prefix='vsched-bench-') as folder:
        hypervisor = _hypervisor(task)
        agent = _agent(task, folder, hypervisor)
        agent.start()
        try:
            settled_s = _settle(agent, task)
            figures = _measure(agent, task)
        finally:
            agent.stop()
            if hypervisor is not None:
                hypervisor.close()
    print(
        json.dumps(
            {
                'kind': task.kind,
                'vms': task.vms,
                'vcpus': task.vcpus,
                'settled_s': round(settled_s, 2),
                **figures,
            }
        )
    )
    return 0


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0

"""How a VM responds with its I/O threads held, and without."""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import random
import statistics
import typing as ty

from benchmarks import frame
from benchmarks import needs
from benchmarks import request_rig
from vsched_agent.privileged import syscalls
from vsched_agent.tests.functional import agent_fixture
from vsched_lib.contract import messages

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

RUNTIME_US, PERIOD_US = 6_000, request_rig.PERIOD_US
#: What burns beside the VM, and what each has reserved.
HOGS, HOG_US = 5, 4_400
#: CPU time of the guest for each answer.
WORK_US = 1_000
REPEATS, QUICK_REPEATS = 5, 2
REQUESTS, QUICK_REQUESTS = 300, 60
#: Before each measurement, so that the threads have what they need.
WARM_UP, QUICK_WARM_UP = 150, 60
SEED = 19

HELD, UNDIVIDED, UNHELD, NO_RESERVATIONS = VARIANTS = (
    'held',
    'held_undivided',
    'unheld',
    'no_reservations',
)

ABOUT = frame.About(
    "Responses of a VM whose host holds its I/O threads, and doesn't",
    'A real VM answers UDP requests, each with 1 ms of work in the guest, '
    'beside five processes that burn the CPU. With reservations the VM has '
    '6 ms and each process 4.4 ms in every 20 ms, all by backend '
    '``deadline``; the whole agent runs. *Held* is the default, '
    "``io_charging=auto``: the host's threads for the VM have a reservation "
    'out of capacity that nobody has claimed, and the agent may divide the '
    'periods. *Held undivided* is the same with ``comm_aware=false``. '
    '*Unheld* is '
    '``io_charging=none``. *No reservations*: neither the VM nor the '
    'processes have any. All come in a shuffled order in every repeat, '
    'each after requests that are not measured. An answer is timed at the '
    "VM's network device, by the kernel's timestamps, from the request to "
    'the answer; the client has a network namespace and a reservation of '
    'its own. Figures are medians over the repeats.',
    (),
    {
        'p99_ms_held': '99th percentile of the answers, I/O threads held, ms',
        'p99_ms_held_undivided': 'the same, held, periods not divided, ms',
        'p99_ms_unheld': 'the same, I/O threads not held, ms',
        'p99_ms_no_reservations': 'the same, nothing reserved, ms',
        'held_vs_unheld': 'the first over the second, of the same repeat; '
        'target: less than 1',
    },
    targets=(frame.at_most('held_vs_unheld', 1, '', 'issue 19'),),
    exercises=('tools/guest',),
)


class _Scene:
    """The VM and the agent; a context manager."""

    def __enter__(self) -> ty.Self:
        self._stack = contextlib.ExitStack()
        try:
            self.rig = self._stack.enter_context(request_rig.Rig(WORK_US))
            self._agent = self._stack.enter_context(
                agent_fixture.RunningAgent(
                    interval=1.0,
                    report_interval=1.0,
                    restore_on_stop=True,
                    reserve_mcpu=request_rig.Hogs.reserved_mcpu(HOGS, HOG_US)
                    + request_rig.Rig.reserved_mcpu(),
                )
            )
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        self._stack.close()

    def measure(
        self, variant: str, requests: int, warm_up: int, seed: int
    ) -> Mapping[str, float]:
        """Return the figures of one variant."""
        reserved = variant != NO_RESERVATIONS
        with request_rig.Hogs(HOGS, HOG_US if reserved else 0) as hogs:
            with self._reservation(variant):
                self.rig.measure(warm_up, seed)
                self._check(variant)
                found = self.rig.measure(requests, seed + 1, hogs.pids)
                self._check(variant)
        return found.figures()

    @contextlib.contextmanager
    def _reservation(self, variant: str) -> Iterator[None]:
        vm = self.rig.vm
        if variant == NO_RESERVATIONS:
            yield
            return
        specs = {
            'cpu_runtime_us': str(RUNTIME_US),
            'cpu_period_us': str(PERIOD_US),
        }
        if variant == UNDIVIDED:
            specs['comm_aware'] = 'false'
        if variant == UNHELD:
            specs['io_charging'] = 'none'
        mark = self._agent.collector.mark()
        vm.set_extra_specs(specs)
        try:
            self._agent.await_said(vm.uuid, mark, state=messages.State.APPLIED)
            yield
        finally:
            mark = self._agent.collector.mark()
            vm.set_extra_specs({})
            self._agent.await_said(
                vm.uuid, mark, state=messages.State.RELEASED
            )

    def _check(self, variant: str) -> None:
        """Refuse to measure what is not as the variant says."""
        vm = self.rig.vm
        found = [
            [_reserved(tid) for tid in tids]
            for tids in (vm.vcpu_tids, vm.io_tids)
        ]
        expected = (variant != NO_RESERVATIONS, variant in (HELD, UNDIVIDED))
        if any(
            one is not wanted
            for tids, wanted in zip(found, expected, strict=True)
            for one in tids
        ):
            raise RuntimeError(
                '%s: vCPUs under SCHED_DEADLINE: %s, I/O threads: %s'
                % (variant, *found)
            )


def _reserved(tid: int) -> bool:
    return syscalls.get_attr(tid).policy == syscalls.SCHED_DEADLINE


def run(quick: bool) -> frame.Run:
    """All variants, in a new order in each repeat."""
    needs.guests()
    needs.two_cpus()
    found: dict[str, list[Mapping[str, float]]] = {
        name: [] for name in VARIANTS
    }
    chance = random.Random(SEED)
    with _Scene() as scene:
        for repeat in range(QUICK_REPEATS if quick else REPEATS):
            for name in chance.sample(VARIANTS, len(VARIANTS)):
                found[name].append(
                    scene.measure(
                        name,
                        QUICK_REQUESTS if quick else REQUESTS,
                        QUICK_WARM_UP if quick else WARM_UP,
                        # The same pauses for all variants of a repeat.
                        SEED + 2 * repeat,
                    )
                )
    for name in VARIANTS:
        yield frame.Variant(name, request_rig.spreads(found[name]))
    return {
        **{
            'p99_ms_' + name: round(
                statistics.median(one['p99_ms'] for one in found[name]), 3
            )
            for name in VARIANTS
        },
        'held_vs_unheld': round(
            statistics.median(
                held['p99_ms'] / unheld['p99_ms']
                for held, unheld in zip(
                    found[HELD], found[UNHELD], strict=True
                )
            ),
            3,
        ),
    }


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """Percentiles by variant, with the spread over the repeats."""
    axes = figure.add_subplot()
    fields = ('mean_ms', 'p95_ms', 'p99_ms', 'max_ms')
    for offset, name in enumerate(VARIANTS):
        spread = [record.variants[name][field] for field in fields]
        axes.bar(
            [place + 0.2 * (offset - 1.5) for place in range(len(fields))],
            [one['median'] for one in spread],
            0.18,
            yerr=[
                [one['median'] - one['least'] for one in spread],
                [one['most'] - one['median'] for one in spread],
            ],
            label=name.replace('_', ' '),
        )
    axes.set_xticks(
        range(len(fields)), [field.removesuffix('_ms') for field in fields]
    )
    axes.set_ylabel('ms')
    axes.legend()

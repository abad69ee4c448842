# SPDX-License-Identifier: Apache-2.0

"""A scheduler that keeps books as Linux does, leaks included."""

import dataclasses
import errno
import itertools
import os
import typing as ty

import fixtures

from vsched_agent.privileged import cgroup
from vsched_agent.privileged import sched
from vsched_agent.privileged import syscalls
from vsched_agent.privileged import threads
from vsched_agent.tests import in_process

CPU = 1 << 20
#: Thread numbers above any that a real machine hands out.
_FIRST_TID = 1 << 23


@dataclasses.dataclass
class Thread:
    """One thread of the fake.

    :param state: its letter in /proc.
    :param left_ns: what is left of its budget.
    :param deadline_ns: when its period ends.
    :param cpus: where it may run.
    :param cpuset: what its control group allows; None for all.
    :param domain: CPUs of its root domain; None for all.
    :param leader: main thread of its process; 0 for itself.
    """

    attr: syscalls.Attr = syscalls.Attr(syscalls.SCHED_OTHER)
    state: str = 'S'
    left_ns: int = 0
    deadline_ns: int = 0
    ran_ns: int = 0
    cpus: frozenset[int] = frozenset((0, 1))
    cpuset: frozenset[int] | None = None
    domain: frozenset[int] | None = None
    leader: int = 0


class FakeKernel(fixtures.Fixture):
    """Takes the place of the scheduling calls, without any privilege.

    :param bound: what it admits, in 2**-20 CPU.
    :param cpus: CPUs online.
    """

    def __init__(
        self,
        bound: int = CPU * 18 // 10,
        cpus: frozenset[int] = frozenset((0, 1)),
    ) -> None:
        super().__init__()
        self.bound = bound
        self.cpus = cpus
        self.leaked = 0
        self.threads: dict[int, Thread] = {}
        #: Every change in its order: (tid, policy, runtime_ns, period_ns).
        self.calls: list[tuple[int, int, int, int]] = []
        self.slept: list[float] = []
        self._tids = itertools.count(_FIRST_TID)

    def _setUp(self) -> None:
        manager = in_process.entrypoints(
            sched.sched_pctxt, cgroup.cgroup_pctxt
        )
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self._getaffinity = os.sched_getaffinity
        self._setaffinity = os.sched_setaffinity
        for name, new in (
            ('vsched_agent.privileged.syscalls.get_attr', self.get_attr),
            ('vsched_agent.privileged.syscalls.set_attr', self.set_attr),
            ('vsched_agent.privileged.threads.View', self._view),
            ('vsched_agent.privileged.threads.leader', self._leader),
            ('vsched_agent.privileged.ownership.refusals', lambda tids: {}),
            ('vsched_agent.privileged.entering.time.sleep', self.slept.append),
            ('os.sched_getaffinity', self._get_cpus),
            ('os.sched_setaffinity', self._set_cpus),
            ('vsched_agent.host.cpu_list.online', lambda root='/': self.cpus),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, new))

    def start(self, **fields) -> int:
        """Start a thread.

        :param fields: of :class:`Thread`.
        :returns: its number.
        """
        tid = next(self._tids)
        self.threads[tid] = Thread(**{'cpus': self.cpus, **fields})
        return tid

    def end(self, tid: int) -> None:
        """End a thread; what it held is free."""
        del self.threads[tid]

    @property
    def used(self) -> int:
        """What threads hold and what has leaked, in 2**-20 CPU."""
        return self.leaked + sum(
            _units(thread.attr) for thread in self.threads.values()
        )

    @property
    def free(self) -> int:
        """What it still admits, in 2**-20 CPU."""
        return self.bound - self.used

    def get_attr(self, tid: int) -> syscalls.Attr:
        return self._thread(tid).attr

    def set_attr(self, tid: int, attr: syscalls.Attr) -> None:
        thread = self._thread(tid)
        before, wanted = _units(thread.attr), _units(attr)
        if attr.policy == syscalls.SCHED_DEADLINE:
            if not (
                1024 <= attr.runtime_ns <= attr.deadline_ns <= attr.period_ns
                and 100_000 <= attr.period_ns <= 4_194_304_000
            ):
                raise OSError(errno.EINVAL, 'out of range')
            if thread.cpus != (thread.domain or self.cpus):
                raise OSError(errno.EPERM, 'confined')
            if wanted > before and wanted - before > self.free:
                raise OSError(errno.EBUSY, 'full')
        elif thread.state != 'R':
            # The hole that parking is for.
            self.leaked += before
        thread.attr = attr
        self.calls.append((tid, attr.policy, attr.runtime_ns, attr.period_ns))

    def _thread(self, tid: int) -> Thread:
        if tid < _FIRST_TID:
            # A real thread of the test, the helper's own.
            return self.threads.setdefault(tid, Thread(cpus=self.cpus))
        try:
            return self.threads[tid]
        except KeyError:
            raise ProcessLookupError(errno.ESRCH, 'no such thread') from None

    def _view(self, tid: int) -> '_View':
        return _View(self._thread(tid))

    def _leader(self, tid: int) -> int:
        return self._thread(tid).leader or tid

    def _get_cpus(self, tid: int) -> frozenset[int]:
        return (
            self._thread(tid).cpus
            if tid >= _FIRST_TID
            else frozenset(self._getaffinity(tid))
        )

    def _set_cpus(self, tid: int, cpus) -> None:
        if tid >= _FIRST_TID:
            thread = self._thread(tid)
            thread.cpus = (
                frozenset(cpus) & self.cpus & (thread.cpuset or self.cpus)
            )
        else:
            self._setaffinity(tid, cpus)


class _View:
    def __init__(self, thread: Thread) -> None:
        self._thread = thread

    def __enter__(self) -> ty.Self:
        return self

    def __exit__(self, *unused) -> None:
        pass

    def close(self) -> None:
        pass

    def state(self) -> str:
        if self._thread.state in threads.DEAD:
            raise ProcessLookupError(errno.ESRCH, 'dead')
        return self._thread.state

    def run_ns(self) -> int:
        return self._thread.ran_ns

    def left_ns(self) -> int | None:
        return self._thread.left_ns

    def deadline_ns(self) -> int | None:
        return self._thread.deadline_ns


def _units(attr: syscalls.Attr) -> int:
    if attr.policy != syscalls.SCHED_DEADLINE:
        return 0
    return syscalls.kernel_bandwidth(attr.runtime_ns, attr.period_ns)

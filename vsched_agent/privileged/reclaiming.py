# SPDX-License-Identifier: Apache-2.0

"""Idle CPU time for work-conserving threads, without taking others' time.

SCHED_FLAG_RECLAIM lets a deadline thread use all bandwidth that no deadline
thread reserved (GRUB). Ordinary threads have lower priority than the class, so
the flag takes their time too. It is therefore set only while CPUs are idle. A
sample is the number of runnable threads of the host (proc_loadavg(5), fourth
field): exact at the moment it is read, unlike idle times, which are as coarse
as a tick on some kernels, and without throttled deadline threads, which
pressure stall information counts as waiting.

The sampling thread is under SCHED_DEADLINE itself: threads that reclaim may
occupy every CPU, and an ordinary thread would wait for them.
"""

from collections.abc import Iterable
import contextlib
import os
import random
import threading
import time
import typing as ty

from vsched_agent.privileged import entering
from vsched_agent.privileged import idle_policy
from vsched_agent.privileged import leaving
from vsched_agent.privileged import syscalls
from vsched_agent.privileged import threads

#: The flag is cleared when the agent has not called for this long, in seconds.
LEASE_S = 10.0
#: The reservation of the sampling thread: 20 mcpu.
RUNTIME_NS = 200_000
PERIOD_NS = 10_000_000
RESERVE_MCPU = 1000 * RUNTIME_NS // PERIOD_NS
#: Name of the sampling thread, as in /proc/PID/task/TID/comm.
COMM = 'vsched-reclaim'

#: How long the number of CPUs is kept, and a thread that ended may stay
#: unnoticed, in seconds.
_CPUS_AGE_S = 1.0
_THREADS_AGE_S = 1.0
#: How long a sampler without threads stays, in seconds.
_LINGER_S = 0.2


class Setter(ty.Protocol):
    """Changes the flags of a thread that is under SCHED_DEADLINE."""

    def __call__(self, request: entering.Request, flags: int) -> bool:
        """Set a thread's flags and nothing else.

        :returns: False when its other parameters differ.
        :raises OSError: with the kernel's errno.
        """


class _Watched(ty.NamedTuple):
    request: entering.Request
    view: threads.View
    leader: int


class Governor:
    """Samples the host and sets or clears the flag on its threads.

    Its own thread runs while there are threads to watch.

    :param setter: changes a thread's flags.
    """

    def __init__(self, setter: Setter) -> None:
        self._setter = setter
        #: Serializes starting and stopping the thread.
        self._lifecycle_lock = threading.Lock()
        #: Held while threads are sampled or changed.
        self._lock = threading.Lock()
        self._watched: dict[int, _Watched] = {}
        #: Main threads of the processes of watched ones.
        self._leaders: dict[int, threads.View] = {}
        self._refused: dict[int, int] = {}
        self._policy = idle_policy.Policy(time.monotonic())
        self._renewed_s = 0.0
        self._switches = 0
        #: When the states of threads were read.
        self._states_s = 0.0
        self._thread: threading.Thread | None = None
        self._sampling = False
        self._end = threading.Event()

    def watch(self, requests: Iterable[entering.Request]) -> None:
        """Let threads use idle CPU time from now on.

        :param requests: their parameters; the flag is ignored.
        :raises OSError: EBUSY when the kernel has no bandwidth for the
            sampling thread; no thread gets the flag then.
        """
        with self._lifecycle_lock:
            with self._lock:
                self._renewed_s = time.monotonic()
                for request in requests:
                    self._drop(request.tid)
                    self._refused.pop(request.tid, None)
                    try:
                        self._watched[request.tid] = self._opened(request)
                    except ProcessLookupError:
                        continue
                    self._set(request.tid, self._policy.on)
                wanted = bool(self._watched) and not self._sampling
            if wanted:
                self._start()

    def forget(self, tids: Iterable[int]) -> list[entering.Request]:
        """Clear the flag of threads and stop watching them.

        :returns: those that were watched.
        """
        found = []
        with self._lock:
            for tid in tids:
                self._refused.pop(tid, None)
                if tid in self._watched:
                    found.append(self._watched[tid].request)
                    self._set(tid, False)
                    self._drop(tid)
        return found

    def stop(self) -> None:
        """Clear all flags; the sampling thread has ended on return."""
        with self._lifecycle_lock:
            self.forget(list(self._watched))
            self._stop()

    def flags(self, tid: int) -> int:
        """Return the flag that the governor set on a thread, or 0."""
        with self._lock:
            return (
                syscalls.FLAG_RECLAIM
                if (self._policy.on and tid in self._watched)
                else 0
            )

    def renew(self) -> dict[str, ty.Any]:
        """Renew the agent's lease; see :data:`LEASE_S`.

        :returns: ``on``, ``watched`` threads, whether the thread is
            ``sampling``, ``switches`` so far, and by
            thread the errno of those that ``refused`` the flag.
        """
        with self._lock:
            self._renewed_s = time.monotonic()
            return {
                'on': self._policy.on,
                'watched': len(self._watched),
                'sampling': self._sampling,
                'switches': self._switches,
                'refused': dict(self._refused),
            }

    def _opened(self, request: entering.Request) -> _Watched:
        view = threads.View(request.tid)
        try:
            leader = threads.leader(request.tid)
            if leader not in self._leaders:
                self._leaders[leader] = threads.View(leader)
        except BaseException:
            view.close()
            raise
        return _Watched(request, view, leader)

    def _drop(self, tid: int) -> None:
        one = self._watched.pop(tid, None)
        if one is not None:
            one.view.close()
        used = {other.leader for other in self._watched.values()}
        for leader in self._leaders.keys() - used:
            self._leaders.pop(leader).close()

    def _set(self, tid: int, on: bool) -> None:
        request = self._watched[tid].request
        try:
            if not self._setter(request, syscalls.FLAG_RECLAIM if on else 0):
                # Something else has changed it.
                self._drop(tid)
        except ProcessLookupError:
            self._drop(tid)
        except OSError as failure:
            # EPERM: the kernel refuses changes of a pinned thread.
            self._refused[tid] = failure.errno or 0
            self._drop(tid)

    def _set_all(self, on: bool) -> None:
        self._switches += 1
        for tid in list(self._watched):
            self._set(tid, on)

    def _start(self) -> None:
        self._stop()
        self._end.clear()
        entered: list[OSError] = []
        ready = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(entered, ready), name=COMM, daemon=True
        )
        self._sampling = True
        self._thread.start()
        ready.wait()
        if entered:
            self.forget(list(self._watched))
            raise entered[0]

    def _stop(self) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self, failed: list[OSError], ready: threading.Event) -> None:
        tid = threading.get_native_id()
        before = syscalls.get_attr(tid)
        try:
            _enter(tid)
        except OSError as failure:
            self._sampling = False
            failed.append(failure)
            return
        finally:
            ready.set()
        try:
            self._sample()
        finally:
            with self._lock:
                self._policy.clear()
                self._set_all(False)
            self._sampling = False
            leaving.leave([leaving.Request(tid, before)])

    def _sample(self) -> None:
        counter = _Runnable()
        with contextlib.closing(counter):
            pause_s, idle_since_s = idle_policy.INTERVAL_S, time.monotonic()
            limit = idle_policy.CostLimit(idle_since_s)
            # Random, to avoid synchronizing with other periodic threads.
            while not self._end.wait(pause_s * random.uniform(0.8, 1.2)):
                began_s = time.thread_time()
                with self._lock:
                    now_s = time.monotonic()
                    self._decide(counter, now_s)
                    pause_s = self._policy.interval_s
                    if self._watched:
                        idle_since_s = now_s
                    elif now_s - idle_since_s > _LINGER_S:
                        self._sampling = False
                        return
                pause_s = limit.pause_s(
                    pause_s, time.thread_time() - began_s, now_s
                )

    def _decide(self, counter: '_Runnable', now_s: float) -> None:
        before = self._policy.on
        if now_s - self._renewed_s > LEASE_S:
            self._policy.clear()
        else:
            # Count first: threads that become runnable later are new.
            cpus, runnable = counter.read(now_s)
            self._policy.take(self._sampled(cpus, runnable, now_s), now_s)
        if self._policy.on != before:
            self._set_all(self._policy.on)

    def _sampled(
        self, cpus: int, runnable: int, now_s: float
    ) -> idle_policy.Sample:
        # Threads that leave a CPU idle do not wait, whatever they are.
        if (
            self._policy.on
            and runnable < cpus
            and now_s - self._states_s < _THREADS_AGE_S
        ):
            return idle_policy.Sample(cpus, runnable, 0, 0)
        self._states_s = now_s
        sample = idle_policy.Sample(
            cpus, runnable, *self._states(exact=not self._policy.on)
        )
        if sample.saturated:
            sample = sample._replace(
                own=self._own(sample),
                taken_part=idle_policy.taken_part(
                    cpus,
                    [
                        one.request.runtime_ns / one.request.period_ns
                        for one in self._watched.values()
                    ],
                ),
            )
        return sample

    def _own(self, sample: idle_policy.Sample) -> int:
        # Main threads of QEMU: those of emulated guests wake up at each tick
        # of the guest.
        own = 0
        for tid, view in self._leaders.items():
            with contextlib.suppress(OSError):
                own += (
                    tid not in self._watched
                    and view.state() == threads.RUNNABLE
                )
        # Some may have become runnable after the count.
        return min(own, sample.runnable - sample.running)

    def _states(self, exact: bool) -> tuple[int, int]:
        # Count runnable threads, and those that are not throttled. With the
        # flag set hardly any is throttled, and checking costs as much again.
        wanting = running = 0
        for tid, one in list(self._watched.items()):
            try:
                if one.view.state() != threads.RUNNABLE:
                    continue
                wanting += 1
                left_ns = one.view.left_ns() if exact else 1
            except OSError:
                self._drop(tid)
                continue
            if left_ns is not None and left_ns > 0:
                running += 1
        return wanting, running


class _Runnable:
    """Counts the runnable threads of the host."""

    def __init__(self) -> None:
        self._file = os.open('/proc/loadavg', os.O_RDONLY | os.O_CLOEXEC)
        self._cpus = 0
        self._asked_s = 0.0

    def close(self) -> None:
        os.close(self._file)

    def read(self, now_s: float) -> tuple[int, int]:
        """Return the CPUs online and the other runnable threads."""
        if not self._cpus or now_s - self._asked_s > _CPUS_AGE_S:
            self._cpus = os.sysconf('SC_NPROCESSORS_ONLN')
            self._asked_s = now_s
        fields = os.pread(self._file, 128, 0).split()
        return self._cpus, int(fields[3].partition(b'/')[0]) - 1


def _enter(tid: int) -> None:
    entering.enter_self(
        entering.Request(tid, RUNTIME_NS, PERIOD_NS, syscalls.FLAG_RECLAIM),
        COMM,
    )

# SPDX-License-Identifier: Apache-2.0

"""Return leaked deadline bandwidth to the kernel.

The kernel keeps the sum of the admitted bandwidth per root domain. Rebuilding
the domains makes it recount the threads in the class. On cgroup v1 toggling
the root cpuset's ``sched_load_balance`` does that
(Documentation/admin-guide/cgroup-v1/cpusets.rst). For a moment every CPU is a
domain without balancing; nothing stops meanwhile.

On cgroup v2 a partition with one CPU, made and removed at once, does the same.
Threads that are confined to this CPU run elsewhere meanwhile.

A thread that has left the class is subtracted at its 0-lag time. A recount
before that time subtracts it twice, and the sum is wrong until the next one.
The repair waits until no thread may be in that state.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import itertools
import os
import time

from oslo_log import log as logging

from vsched_agent.enforcement import capacity
from vsched_agent.host import cgroup
from vsched_agent.host import cpu_list
from vsched_agent.privileged import cgroup as privileged
from vsched_agent.privileged import cgroup_partitions
from vsched_agent.privileged import sched

LOG = logging.getLogger(__name__)

_SWITCH = 'cpuset.sched_load_balance'
#: For this long no thread may have left the class: a second of debt, and a
#: period, see ``Reservation.worst_debt_us``.
_QUIET_S = 1.5
_POLL_S = 0.05
#: How long to wait for that.
_GIVE_UP_S = 30.0

_numbers = itertools.count()

Threads = Callable[[], Sequence[capacity.DeadlineThread]]


class NotRepairable(Exception):
    """Only a reboot recovers the bandwidth on this host."""


def check(cgroups: cgroup.Cgroups) -> str:
    """Return the file or the folder by which root domains are rebuilt.

    :param cgroups: the host's control groups.
    :raises NotRepairable: when there is none.
    """
    mount = cgroups.mount('cpuset')
    if mount is None:
        raise NotRepairable(
            'only the cpuset controller can rebuild the root domains while '
            'the host runs; a reboot does it as well'
        )
    if mount.version == 1:
        return '%s/%s' % (mount.point.rstrip('/'), _SWITCH)
    if len(cgroups.unpartitioned_cpus() or ()) < 2:
        raise NotRepairable(
            'cgroup v2 rebuilds the root domains where the top group has at '
            'least two CPUs; a reboot does it as well'
        )
    return mount.point


def rebuild_root_domains(
    cgroups: cgroup.Cgroups | None = None,
    threads: Threads = capacity.deadline_threads,
) -> None:
    """Make the kernel recount the admitted bandwidth.

    :param cgroups: the host's control groups.
    :param threads: lists the threads under SCHED_DEADLINE.
    :raises NotRepairable: when the host cannot do that, or refuses it.
    """
    cgroups = cgroups or cgroup.Cgroups()
    path = check(cgroups)
    await_quiet(threads)
    mount = cgroups.mount('cpuset')
    if mount is not None and mount.version == 2:
        _by_partition(mount.point, cgroups.unpartitioned_cpus() or frozenset())
    else:
        _by_switch(path)


def await_quiet(threads: Threads = capacity.deadline_threads) -> None:
    """Wait until no thread has left the class for long enough.

    :param threads: lists the threads under SCHED_DEADLINE.
    :raises NotRepairable: when threads leave all the time.
    """
    began = changed = time.monotonic()
    before: set[int] = set()
    while time.monotonic() - changed < _QUIET_S:
        if time.monotonic() - began > _GIVE_UP_S:
            raise NotRepairable(
                'threads enter and leave SCHED_DEADLINE all the time; '
                'repeat it on a calm host'
            )
        now = {one.tid for one in threads()}
        if before - now:
            changed = time.monotonic()
        before = now
        time.sleep(_POLL_S)


def _by_switch(path: str) -> None:
    try:
        if cgroup.read_text(path) != '1':
            raise NotRepairable(
                '%s is not 1: the host uses root domains of its own, '
                'which vsched does not change' % path
            )
    except FileNotFoundError:
        raise NotRepairable('there is no %s' % path) from None
    failed = privileged.write([(path, '0'), (path, '1')])
    if failed:
        raise NotRepairable(
            '%s refuses: errno %d' % (failed['path'], failed['errno'])
        )


def _by_partition(top: str, cpus: frozenset[int]) -> None:
    before = _narrow(cpus)
    # A CPU to which no thread is confined, if there is one.
    taken = {next(iter(one)) for one in before.values() if len(one) == 1}
    cpu = max(cpus - taken or cpus)
    try:
        with _cpusets_below(top):
            failed = cgroup_partitions.rebuild_root_domains(
                os.path.join(
                    top, 'vsched-probe-%d-%d' % (os.getpid(), next(_numbers))
                ),
                cpu,
            )
    finally:
        _restore(before)
    if failed:
        raise NotRepairable(
            'a partition of CPU %d is refused: %s'
            % (cpu, failed.get('state') or os.strerror(failed.get('errno', 0)))
        )


@contextlib.contextmanager
def _cpusets_below(top: str) -> Iterator[None]:
    """Have the controller enabled below the top group.

    libvirt does that for instances. The helper cannot: enabling it needs
    CAP_SYS_NICE for all processes of the host.

    :raises NotRepairable: when this process may not.
    """
    path = os.path.join(top, 'cgroup.subtree_control')
    if 'cpuset' in cgroup.read_text(path).split():
        yield
        return
    try:
        _write(path, '+cpuset')
    except OSError as failure:
        raise NotRepairable(
            'the cpuset controller is not enabled in %s: %s; repeat it as '
            'root, or while an instance runs' % (path, failure.strerror)
        ) from None
    try:
        yield
    finally:
        # It stays enabled where an instance has begun to use it meanwhile.
        with contextlib.suppress(OSError):
            _write(path, '-cpuset')


def _write(path: str, text: str) -> None:
    with open(path, 'w') as file:
        file.write(text)


def _narrow(cpus: frozenset[int]) -> Mapping[int, frozenset[int]]:
    """Return the CPUs of each thread that may not use all of these."""
    found = {}
    for pid, tid in capacity.threads():
        try:
            allowed = frozenset(os.sched_getaffinity(tid))
            if not cpus <= allowed and not _is_kernels(pid):
                found[tid] = allowed
        except (ProcessLookupError, FileNotFoundError):
            continue
    return found


def _is_kernels(pid: int) -> bool:
    with open('/proc/%d/cmdline' % pid, 'rb') as file:
        return not file.read(1)


def _restore(before: Mapping[int, frozenset[int]]) -> None:
    """Confine threads again where the kernel has forgotten it.

    Kernels before 6.2 keep no affinity of threads beyond that of their group.
    """
    for tid, cpus in before.items():
        try:
            if frozenset(os.sched_getaffinity(tid)) != cpus:
                _confine(tid, cpus)
        except ProcessLookupError:
            continue
        except OSError as failure:
            LOG.warning(
                'thread %d was confined to CPUs %s and is no more: %s',
                tid,
                cpu_list.render(cpus),
                failure,
            )


def _confine(tid: int, cpus: frozenset[int]) -> None:
    try:
        sched.set_affinity([(tid, sorted(cpus))])
    except PermissionError:
        # The helper confines instances' threads only.
        os.sched_setaffinity(tid, cpus)

# SPDX-License-Identifier: Apache-2.0

"""CPUs of their own for pinned vCPUs: cpuset partitions of cgroup v2.

Since Linux 6.7 a group anywhere may become a partition, if the groups above
give it their CPUs in ``cpuset.cpus.exclusive`` ("remote partition"). The group
of a vCPU that is pinned to one CPU is then a root domain of its own: the
kernel admits deadline bandwidth on this CPU separately, accepts changes of
parameters while the thread is pinned, and schedules nothing else there.

Making and removing a partition makes the kernel recount deadline bandwidth;
see :mod:`vsched_agent.enforcement.leak_repair`.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import os
import pathlib
import typing as ty

from oslo_log import log as logging

from vsched_agent.enforcement import base
from vsched_agent.enforcement import leak_repair
from vsched_agent.host import cgroup
from vsched_agent.host import cpu_list
from vsched_agent.privileged import partitions as privileged
from vsched_agent.privileged import sched
from vsched_lib.contract import errors

LOG = logging.getLogger(__name__)

EXCLUSIVE = 'cpuset.cpus.exclusive'
PARTITION = 'cpuset.cpus.partition'
#: Where a prior state has what a partition has replaced.
_KEY = 'partition'


class NotRemoved(Exception):
    """Partitions are left, or what they have replaced is not restored."""


@dataclasses.dataclass(frozen=True, slots=True)
class Former:
    """What the partition of one thread has replaced.

    :param path: the group.
    :param cpu: its CPU as a partition.
    :param cpuset: text of ``cpuset.cpus``.
    :param claimed: the groups that did not have the CPU as an exclusive one.
    """

    path: str
    cpu: int
    cpuset: str
    claimed: tuple[str, ...]

    @classmethod
    def of(cls, prior: base.Prior) -> 'Former | None':
        """Read it from a prior state; None when nothing was replaced."""
        found = prior.get(_KEY)
        if not found:
            return None
        return cls(
            found['path'],
            int(found['cpu']),
            found['cpuset'],
            tuple(found['claimed']),
        )

    def to_dict(self) -> dict[str, ty.Any]:
        """Return it as a part of a prior state."""
        return {_KEY: {**dataclasses.asdict(self), 'claimed': [*self.claimed]}}


def remote(top: str) -> bool:
    """Return whether this kernel has partitions below groups that are none.

    :param top: of the unified hierarchy. Its groups have cpusets while
        instances run.
    """
    return any(pathlib.Path(top).glob('*/' + EXCLUSIVE))


class Partitions:
    """Makes and removes partitions of vCPUs.

    :param cpus: CPUs that may become partitions.
    :param cgroups: the host's control groups.
    :param await_quiet: waits until the kernel may recount.
    """

    def __init__(
        self,
        cpus: Collection[int] = frozenset(),
        cgroups: cgroup.Cgroups | None = None,
        await_quiet: Callable[[], None] = leak_repair.await_quiet,
    ) -> None:
        self._cpus = frozenset(cpus)
        self._cgroups = cgroups or cgroup.Cgroups()
        self._await_quiet = await_quiet

    def wanted(self, targets: Iterable[base.Target]) -> list[base.Target]:
        """Return the targets whose groups are partitions or may become some.

        :param targets: pinned ones. Those that are pinned to several CPUs, or
            for the time of a balloon, are confined instead.
        """
        return [
            target
            for target in targets
            if not target.bound
            and target.pinned_cpus is not None
            and len(target.pinned_cpus) == 1
            and self._place(target) is not None
            and (target.pinned_cpus <= self._cpus or self.is_made(target))
        ]

    def record(self, target: base.Target) -> dict[str, ty.Any]:
        """Return what a prior state has to keep of a thread's partition.

        :raises ProcessLookupError: when the thread has ended.
        """
        if not self.wanted([target]):
            return {}
        if self.is_made(target):
            # Made by others, and to be left.
            return {_KEY: {}}
        return self._former(target).to_dict()

    def replaced(
        self, targets: Iterable[base.Target], prior: Mapping[int, base.Prior]
    ) -> dict[int, Former]:
        """Return what the partitions of threads have replaced.

        :param targets: threads that may have partitions.
        :param prior: their states from before.
        """
        found = {}
        for target in targets:
            before = prior.get(target.tid, {})
            former = Former.of(before)
            try:
                if former is None and _KEY not in before:
                    # The record is older than the partition, or lost.
                    if not self.is_made(target):
                        continue
                    former = self._former(target, made=True)
            except (ProcessLookupError, FileNotFoundError):
                continue
            if former is not None:
                found[target.tid] = former
        return found

    def _former(self, target: base.Target, made: bool = False) -> Former:
        place = self._place(target)
        if place is None:
            raise ProcessLookupError('thread %d' % target.tid)
        cpu = min(target.pinned_cpus or ())
        claimed = []
        above: cgroup.Place | None = place
        while above is not None and above.parent is not None:
            if (cpu in cpu_list.parse(above.read(EXCLUSIVE))) is made:
                claimed.append(above.path)
            above = above.parent
        return Former(
            place.path,
            cpu,
            '' if made else place.read('cpuset.cpus'),
            tuple(claimed),
        )

    def is_made(self, target: base.Target) -> bool:
        """Return whether a thread's group is a partition with its CPU."""
        place = self._place(target)
        return (
            place is not None
            and place.read(PARTITION) == 'root'
            and cpu_list.parse(place.read('cpuset.cpus.effective'))
            == target.pinned_cpus
        )

    @contextlib.contextmanager
    def made(self, targets: Sequence[base.Target]) -> Iterator[None]:
        """Make partitions of threads; remove them when the body fails.

        :param targets: see :meth:`wanted`.
        :raises errors.Refused: when the kernel refuses it; nothing is changed
            then.
        """
        new: list[Former] = []
        missing = [one for one in targets if not self.is_made(one)]
        if missing:
            self._await()
        try:
            for target in missing:
                former = self._former(target)
                self._make(target, former)
                new.append(former)
            for target in targets:
                cpus = target.pinned_cpus or frozenset()
                if frozenset(os.sched_getaffinity(target.tid)) != cpus:
                    sched.set_affinity([(target.tid, sorted(cpus))])
            yield
        except BaseException:
            try:
                self.remove(new)
            except Exception as failure:
                # The cause of the refusal is what has to be known.
                LOG.error('partitions were not removed: %s', failure)
            raise

    def remove(self, formers: Collection[Former]) -> None:
        """Remove partitions, also those of threads that have ended.

        :param formers: what they have replaced.
        :raises NotRemoved: when some are left; the others are removed.
        """
        if not formers:
            return
        self._await()
        problems = []
        for former in sorted(formers, key=lambda one: one.path):
            try:
                unrestored = privileged.dissolve(
                    former.path, former.cpu, former.cpuset, former.claimed
                )
            except Exception as failure:
                problems.append('CPU %d: %s' % (former.cpu, failure))
                continue
            if unrestored:
                problems.append(
                    'CPU %d: %s of groups %s was not restored'
                    % (former.cpu, EXCLUSIVE, ', '.join(unrestored))
                )
        if problems:
            raise NotRemoved('; '.join(problems))

    def _make(self, target: base.Target, former: Former) -> None:
        try:
            failure = privileged.isolate(former.path, former.cpu)
        except Exception as problem:
            # The operator has to see any reason why the helper does not start.
            raise errors.Refused(
                'vCPU %d cannot have CPU %d as a partition: the privileged '
                'helper fails: %s' % (target.index, former.cpu, problem),
                errors.Code.PINNING_UNSUPPORTED,
                {'vcpu': target.index, 'tid': target.tid},
            ) from None
        if failure:
            raise errors.Refused(
                'vCPU %d cannot have CPU %d as a partition: %s; another '
                'partition may have this CPU, or no CPU would be left'
                % (
                    target.index,
                    former.cpu,
                    failure.get('state')
                    or os.strerror(failure.get('errno', 0)),
                ),
                errors.Code.PINNING_UNSUPPORTED,
                {
                    'vcpu': target.index,
                    'tid': target.tid,
                    'pinned_cpus': [former.cpu],
                },
            )

    def _await(self) -> None:
        try:
            self._await_quiet()
        except leak_repair.NotRepairable as failure:
            # What the kernel then counts twice, the repair finds.
            LOG.warning('partitions are changed meanwhile: %s', failure)

    def _place(self, target: base.Target) -> cgroup.Place | None:
        """Return a thread's own group where it may become a partition.

        :returns: None also when the thread has ended.
        """
        try:
            place = self._cgroups.place(target.tid, 'cpuset')
            if (
                place is None
                or place.version != 2
                or place.parent is None
                or not os.path.exists(place.file(EXCLUSIVE))
                or not self._cgroups.is_alone(target.tid, place)
            ):
                return None
        except (FileNotFoundError, ProcessLookupError):
            return None
        return place

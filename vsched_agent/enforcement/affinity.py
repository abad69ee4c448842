# SPDX-License-Identifier: Apache-2.0

"""Pinned vCPUs under SCHED_DEADLINE.

The kernel takes a thread into the class, and changes its parameters there,
only while it may run on every CPU of its root domain (sched_setattr gives
EPERM otherwise). Afterwards the cpuset of the thread's own control group
confines it: writing it moves the thread at once, in the class too. So a pinned
thread is widened, set, and narrowed again. The kernel's admission control
stays global; the planner has to limit the sum on each CPU
(``vsched_lib.model.admission.partitioned``).
"""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import os
import typing as ty

from oslo_log import log as logging

from vsched_agent.enforcement import base
from vsched_agent.host import cgroup
from vsched_agent.host import cpu_list
from vsched_agent.privileged import cgroup as privileged_cgroup
from vsched_agent.privileged import sched
from vsched_lib.contract import errors

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Confinement:
    """The CPUs of one thread, and the cpuset that sets them.

    :param tid: the thread.
    :param path: control file of its own cpuset.
    :param cpuset: that file's text.
    :param cpus: the CPUs of its affinity.
    """

    tid: int
    path: str
    cpuset: str
    cpus: frozenset[int]


class Affinity:
    """Widens and narrows threads. Safe from any thread.

    :param cgroups: the host's control groups.
    :param root: root of the file system; tests use their own.
    """

    def __init__(
        self, cgroups: cgroup.Cgroups | None = None, root: str = '/'
    ) -> None:
        self._cgroups = cgroups or cgroup.Cgroups(root)
        self._root = root

    def pinned(self, targets: Sequence[base.Target]) -> list[base.Target]:
        """Return the targets that are pinned to a subset of the CPUs."""
        online = cpu_list.online(self._root)
        return [
            target
            for target in targets
            if target.pinned_cpus is not None
            and not online <= target.pinned_cpus
        ]

    def confinement(self, target: base.Target) -> Confinement:
        """Return how a pinned thread is confined now.

        :raises ProcessLookupError: when the thread has ended.
        :raises errors.Refused: when it has no cpuset of its own.
        """
        return self._read(target)[1]

    def _read(self, target: base.Target) -> tuple[cgroup.Place, Confinement]:
        place = self._cgroups.place(target.tid, 'cpuset')
        name = 'cpuset.cpus'
        try:
            if (
                place is None
                or place.parent is None
                or not self._cgroups.is_alone(target.tid, place)
            ):
                raise _unsupported(
                    target,
                    'has no cpuset of its own%s'
                    % (
                        ': it shares %s' % place.path
                        if place
                        else ': this host mounts no cpuset controller'
                    ),
                )
            return place, Confinement(
                target.tid,
                place.file(name),
                place.read(name),
                frozenset(os.sched_getaffinity(target.tid)),
            )
        except FileNotFoundError as failure:
            raise _unsupported(
                target, 'has no cpuset of its own: %s' % failure
            ) from None

    @contextlib.contextmanager
    def widened(self, targets: Sequence[base.Target]) -> Iterator[None]:
        """Let pinned threads use every CPU, and narrow them afterwards.

        When the body fails, each is confined as it was found.

        :param targets: pinned ones, see :meth:`pinned`.
        :raises errors.Refused: when the kernel refuses it; nothing is changed
            then.
        """
        found: list[Confinement] = []
        wide: list[tuple[str, str]] = []
        for target in targets:
            place, confinement = self._read(target)
            found.append(confinement)
            wide.append((confinement.path, _widest(place)))
        try:
            self._write(wide, targets)
            sched.set_affinity(
                [
                    (target.tid, sorted(cpu_list.online(self._root)))
                    for target in targets
                ]
            )
            yield
            self._write(
                [
                    (
                        confinement.path,
                        cpu_list.render(target.pinned_cpus or ()),
                    )
                    for target, confinement in zip(targets, found, strict=True)
                ],
                targets,
            )
            self._verify(targets)
        except BaseException:
            self.confine(found)
            raise

    @contextlib.contextmanager
    def unpinned(self, targets: Sequence[base.Target]) -> Iterator[None]:
        """Let threads use every CPU in the body, and confine them again.

        A thread must be unpinned to leave the class without a leak. One that
        cannot be unpinned is left as it is.

        :param targets: any; those that are not pinned are skipped.
        """
        online = cpu_list.online(self._root)
        found: list[Confinement] = []
        try:
            for target in targets:
                try:
                    if frozenset(os.sched_getaffinity(target.tid)) >= online:
                        continue
                    place, confinement = self._read(target)
                    found.append(confinement)
                    self._write([(confinement.path, _widest(place))], [target])
                    sched.set_affinity([(target.tid, sorted(online))])
                except ProcessLookupError:
                    continue
                except (errors.Refused, OSError) as failure:
                    LOG.warning(
                        'thread %d cannot be unpinned: %s', target.tid, failure
                    )
            yield
        finally:
            self.confine(found)

    def release(self, targets: Sequence[base.Target]) -> list[base.Target]:
        """Let threads use every CPU permanently.

        :param targets: threads that nothing should confine. One that cannot
            be unpinned is left as it is.
        :returns: those that were confined.
        """
        online = cpu_list.online(self._root)
        released = []
        for target in targets:
            try:
                if frozenset(os.sched_getaffinity(target.tid)) >= online:
                    continue
                place, confinement = self._read(target)
                self._write([(confinement.path, _widest(place))], [target])
                sched.set_affinity([(target.tid, sorted(online))])
            except ProcessLookupError:
                continue
            except (errors.Refused, OSError) as failure:
                LOG.warning(
                    'thread %d cannot be unpinned: %s', target.tid, failure
                )
            else:
                released.append(target)
        return released

    def confine(self, wanted: Sequence[Confinement]) -> None:
        """Confine threads as noted; those that have ended are skipped.

        :param wanted: from :meth:`confinement`.
        """
        for one in wanted:
            failure = privileged_cgroup.write([(one.path, self._former(one))])
            if failure and os.path.exists(one.path):
                LOG.error(
                    'cpuset %s cannot be set back to %r: %s',
                    one.path,
                    one.cpuset,
                    os.strerror(failure['errno']),
                )
            try:
                if frozenset(os.sched_getaffinity(one.tid)) != one.cpus:
                    sched.set_affinity([(one.tid, sorted(one.cpus))])
            except ProcessLookupError:
                continue
            except OSError as problem:
                LOG.error(
                    'thread %d cannot be set back to CPUs %s: %s',
                    one.tid,
                    cpu_list.render(one.cpus),
                    problem,
                )

    def _former(self, found: Confinement) -> str:
        """Return what to write for a thread to be confined as noted."""
        if found.cpuset:
            return found.cpuset
        try:
            place = self._cgroups.place(found.tid, 'cpuset')
            return '' if place is None else _widest(place)
        except (ProcessLookupError, FileNotFoundError):
            return ''

    def _write(
        self, values: list[tuple[str, str]], targets: Sequence[base.Target]
    ) -> None:
        failure = privileged_cgroup.write(values)
        if failure:
            text = dict(values)[failure['path']]
            raise errors.Refused(
                'pinned vCPUs %s: cpuset %s refuses %r: %s'
                % (
                    ', '.join(str(target.index) for target in targets),
                    failure['path'],
                    text,
                    os.strerror(failure['errno']),
                ),
                errors.Code.PINNING_UNSUPPORTED,
            )

    def _verify(self, targets: Sequence[base.Target]) -> None:
        online = cpu_list.online(self._root)
        for target in targets:
            cpus = frozenset(os.sched_getaffinity(target.tid))
            wanted = (target.pinned_cpus or frozenset()) & online
            if cpus != wanted:
                raise _unsupported(
                    target,
                    'is on CPUs %s and not on %s after its cpuset '
                    'was written'
                    % (cpu_list.render(cpus), cpu_list.render(wanted)),
                )


def _widest(place: cgroup.Place) -> str:
    # As wide as the parent group: v1 accepts no more. In v2 '' means that,
    # but a group with threads that has a value does not accept it (ENOSPC).
    parent = place.parent
    if parent is None:
        return ''
    if place.version == 2:
        return parent.read('cpuset.cpus.effective')
    return parent.read('cpuset.cpus')


def _unsupported(target: base.Target, why: str) -> errors.Refused:
    figures: dict[str, ty.Any] = {
        'vcpu': target.index,
        'tid': target.tid,
        'pinned_cpus': sorted(target.pinned_cpus or ()),
    }
    return errors.Refused(
        'vCPU %d is pinned to CPUs %s and thread %d %s'
        % (
            target.index,
            cpu_list.render(target.pinned_cpus or ()),
            target.tid,
            why,
        ),
        errors.Code.PINNING_UNSUPPORTED,
        figures,
    )

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

"""Pinned vCPUs under SCHED_DEADLINE.

The kernel takes a thread into the class, and changes its parameters there,
only while it may run on every CPU of its root domain (sched_setattr gives
EPERM otherwise). What confines a thread afterwards is the cpuset of its own
control group: writing it moves the thread at once and the class does not
object. So a pinned thread is widened, set, and narrowed again. Admission
stays global in the kernel; whoever plans has to keep each CPU's sum in
bounds (``vsched_lib.model.admission.partitioned``).
"""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import os
import typing as ty

from oslo_log import log as logging

from vsched_agent.enforcement import base
from vsched_agent.enforcement import cgroup
from vsched_agent.enforcement import kernel
from vsched_agent.privileged import cgroup as privileged_cgroup
from vsched_agent.privileged import sched
from vsched_lib.contract import errors

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Confinement:
    """Where one thread may run, and what says so.

    :param tid: the thread.
    :param path: its own cpuset's control file.
    :param cpuset: that file's text.
    :param cpus: the CPUs the kernel lets it use.
    """

    tid: int
    path: str
    cpuset: str
    cpus: frozenset[int]


class Affinity:
    """Widens and narrows threads. Safe from any thread.

    :param cgroups: the host's control groups.
    :param root: the file system's top, for tests with one of their own.
    """

    def __init__(self, cgroups: cgroup.Cgroups | None = None,
                 root: str = '/') -> None:
        self._cgroups = cgroups or cgroup.Cgroups(root)
        self._root = root

    def pinned(self, targets: Sequence[base.Target]) -> list[base.Target]:
        """The targets that are confined to fewer CPUs than there are."""
        online = kernel.online_cpus(self._root)
        return [target for target in targets
                if target.pinned_cpus is not None and
                not online <= target.pinned_cpus]

    def confinement(self, target: base.Target) -> Confinement:
        """How a pinned thread is confined now.

        :raises ProcessLookupError: when the thread is gone.
        :raises errors.Refused: when it has no cpuset of its own.
        """
        return self._look(target)[1]

    def _look(self, target: base.Target,
              ) -> tuple[cgroup.Place, Confinement]:
        place = self._cgroups.place(target.tid, 'cpuset')
        name = 'cpuset.cpus'
        try:
            if (place is None or place.parent is None or
                    place.threads() != {target.tid}):
                raise _unsupported(target, 'has no cpuset of its own%s' % (
                    ': it shares %s' % place.path if place else
                    ': this host mounts no cpuset controller'))
            return place, Confinement(
                target.tid, place.file(name), place.read(name),
                frozenset(os.sched_getaffinity(target.tid)))
        except FileNotFoundError as failure:
            raise _unsupported(
                target, 'has no cpuset of its own: %s' % failure) from None

    @contextlib.contextmanager
    def widened(self, targets: Sequence[base.Target]) -> Iterator[None]:
        """Let pinned threads use every CPU, and narrow them afterwards.

        When the body fails, each is confined as it was found.

        :param targets: pinned ones, see :meth:`pinned`.
        :raises errors.Refused: when that does not work here; nothing is
            changed then.
        """
        found: list[Confinement] = []
        wide: list[tuple[str, str]] = []
        for target in targets:
            place, confinement = self._look(target)
            found.append(confinement)
            wide.append((confinement.path, _widest(place)))
        try:
            self._write(wide, targets)
            sched.set_affinity([
                (target.tid, sorted(kernel.online_cpus(self._root)))
                for target in targets])
            yield
            self._write([
                (confinement.path, cgroup.format_cpus(
                    target.pinned_cpus or ()))
                for target, confinement in zip(targets, found, strict=True)
            ], targets)
            self._verify(targets)
        except BaseException:
            self.confine(found)
            raise

    @contextlib.contextmanager
    def loosened(self, targets: Sequence[base.Target]) -> Iterator[None]:
        """Let threads use every CPU meanwhile, and confine them again.

        A thread must be loose to leave the class without a leak, whoever
        confined it. One that can not be let loose is left as it is.

        :param targets: any; those that are loose already are passed over.
        """
        online = kernel.online_cpus(self._root)
        found: list[Confinement] = []
        try:
            for target in targets:
                try:
                    if frozenset(os.sched_getaffinity(
                            target.tid)) >= online:
                        continue
                    place, confinement = self._look(target)
                    found.append(confinement)
                    self._write([(confinement.path, _widest(place))],
                                [target])
                    sched.set_affinity([(target.tid, sorted(online))])
                except ProcessLookupError:
                    continue
                except (errors.Refused, OSError) as failure:
                    LOG.warning('thread %d can not be let loose: %s',
                                target.tid, failure)
            yield
        finally:
            self.confine(found)

    def confine(self, wanted: Sequence[Confinement]) -> None:
        """Confine threads as noted; those that are gone are passed over.

        :param wanted: from :meth:`confinement`.
        """
        for one in wanted:
            failure = privileged_cgroup.write([(one.path, one.cpuset)])
            if failure and os.path.exists(one.path):
                LOG.error('cpuset %s is not %r again: %s', one.path,
                          one.cpuset, os.strerror(failure['errno']))
            try:
                if frozenset(os.sched_getaffinity(one.tid)) != one.cpus:
                    sched.set_affinity([(one.tid, sorted(one.cpus))])
            except ProcessLookupError:
                continue
            except OSError as problem:
                LOG.error('thread %d is not on CPUs %s again: %s', one.tid,
                          cgroup.format_cpus(one.cpus), problem)

    def _write(self, values: list[tuple[str, str]],
               targets: Sequence[base.Target]) -> None:
        failure = privileged_cgroup.write(values)
        if failure:
            text = dict(values)[failure['path']]
            raise errors.Refused(
                'pinned vCPUs %s: cpuset %s takes no %r: %s' % (
                    ', '.join(str(target.index) for target in targets),
                    failure['path'], text, os.strerror(failure['errno'])),
                errors.Code.PINNING_UNSUPPORTED)

    def _verify(self, targets: Sequence[base.Target]) -> None:
        online = kernel.online_cpus(self._root)
        for target in targets:
            cpus = frozenset(os.sched_getaffinity(target.tid))
            wanted = (target.pinned_cpus or frozenset()) & online
            if cpus != wanted:
                raise _unsupported(
                    target, 'is on CPUs %s and not on %s after its cpuset '
                    'was written' % (cgroup.format_cpus(cpus),
                                     cgroup.format_cpus(wanted)))


def _widest(place: cgroup.Place) -> str:
    # As wide as the group above: the kernel takes no more.
    parent = place.parent
    if place.version == 2 or parent is None:
        return ''
    return parent.read('cpuset.cpus')


def _unsupported(target: base.Target, why: str) -> errors.Refused:
    figures: dict[str, ty.Any] = {
        'vcpu': target.index, 'tid': target.tid,
        'pinned_cpus': sorted(target.pinned_cpus or ())}
    return errors.Refused(
        'vCPU %d is pinned to CPUs %s and thread %d %s' % (
            target.index, cgroup.format_cpus(target.pinned_cpus or ()),
            target.tid, why), errors.Code.PINNING_UNSUPPORTED, figures)

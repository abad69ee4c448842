# SPDX-License-Identifier: Apache-2.0

"""Find a thread's control groups under v1, v2, or both."""

import dataclasses
import os

from vsched_agent.host import cpu_list
from vsched_agent.host import mount_table

Mount = mount_table.Mount

#: A thread that KVM starts in QEMU's process, and thereby in the group of the
#: vCPU that runs first, since Linux 6.12. It splits huge pages once an hour.
#: Names of threads are cut off at 15 characters.
KVM_RECOVERY_COMM = 'kvm-nx-lpage-re'


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """One thread's group under one controller.

    :param version: 1 or 2.
    :param path: the group's folder.
    :param mount: the root folder of the hierarchy.
    """

    version: int
    path: str
    mount: str

    def file(self, name: str) -> str:
        """Return the path of a control file."""
        return os.path.join(self.path, name)

    @property
    def parent(self) -> 'Place | None':
        """The parent group, None at the root."""
        if self.path == self.mount:
            return None
        return Place(self.version, os.path.dirname(self.path), self.mount)

    def read(self, name: str) -> str:
        """Return a control file's text.

        :raises FileNotFoundError: when the group or the file does not exist.
        """
        return read_text(self.file(name))

    def threads(self) -> frozenset[int]:
        """Return the threads in the group itself."""
        return frozenset(
            int(tid)
            for tid in self.read(
                'tasks' if self.version == 1 else 'cgroup.threads'
            ).split()
        )


def read_text(path: str) -> str:
    """Return a small file's text, fast enough for frequent reads.

    :raises FileNotFoundError: when it does not exist, or its group was removed
        during the read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 65536).decode().strip()
    except OSError as failure:
        # kernfs returns ENODEV when the group is removed while it is open.
        raise FileNotFoundError(
            failure.errno, failure.strerror, path
        ) from None
    finally:
        os.close(descriptor)


class Cgroups:
    """The control groups of this host.

    :param root: root of the file system; tests use their own.
    """

    def __init__(self, root: str = '/') -> None:
        self._root = root
        self._mounts: dict[str, Mount] | None = None

    @property
    def versions(self) -> frozenset[int]:
        """The cgroup versions mounted here."""
        return frozenset(
            mount.version for mount in self._all_mounts().values()
        )

    def mount(self, controller: str) -> Mount | None:
        """Return the mount of a controller, None when it is not mounted."""
        mounts = self._all_mounts()
        if controller in mounts:
            return mounts[controller]
        unified = mounts.get('')
        if unified is not None:
            try:
                offered = read_text(
                    os.path.join(unified.point, 'cgroup.controllers')
                )
            except FileNotFoundError:
                return None
            if controller in offered.split():
                return unified
        return None

    def place(self, tid: int, controller: str) -> Place | None:
        """Return a thread's group under a controller.

        :returns: None when the controller is not mounted, or the group is
            outside of its mount.
        :raises ProcessLookupError: when the thread has ended.
        """
        mount = self.mount(controller)
        if mount is None:
            return None
        try:
            text = read_text(self._path('proc/%d/cgroup' % tid))
        except FileNotFoundError as failure:
            raise ProcessLookupError(
                failure.errno, 'thread %d' % tid
            ) from None
        for line in text.splitlines():
            _, controllers, path = line.split(':', 2)
            if mount.version == 1:
                if controller not in controllers.split(','):
                    continue
            elif controllers:
                continue
            below = os.path.relpath(path, mount.root)
            if below.startswith('..'):
                return None
            folder = os.path.normpath(os.path.join(mount.point, below))
            return Place(mount.version, folder, mount.point)
        return None

    def unpartitioned_cpus(self) -> frozenset[int] | None:
        """Return the CPUs that are in no partition; None when unknown.

        Only the unified hierarchy has partitions: groups that are root
        domains of their own.
        """
        try:
            mount = self.mount('cpuset')
            if mount is None or mount.version != 2:
                return None
            return cpu_list.parse(
                read_text(os.path.join(mount.point, 'cpuset.cpus.effective'))
            )
        except FileNotFoundError:
            return None

    def is_alone(self, tid: int, place: Place) -> bool:
        """Return whether a vCPU's group has no thread but the vCPU's.

        Threads that KVM starts in the same process do not count.

        :param tid: the vCPU's thread.
        :param place: its group.
        :raises FileNotFoundError: when the group does not exist.
        """
        tids = place.threads()
        return tid in tids and all(
            self._is_kvms(tid, other) for other in tids - {tid}
        )

    def _is_kvms(self, tid: int, other: int) -> bool:
        try:
            comm = read_text(self._path('proc/%d/task/%d/comm' % (tid, other)))
        except FileNotFoundError:
            # Of another process, or ended.
            return False
        return comm == KVM_RECOVERY_COMM

    def _all_mounts(self) -> dict[str, Mount]:
        if self._mounts is None:
            text = read_text_whole(self._path('proc/self/mountinfo'))
            self._mounts = {
                controller: dataclasses.replace(
                    mount, point=self._path(mount.point.lstrip('/'))
                )
                for controller, mount in mount_table.choose(text).items()
            }
        return self._mounts

    def _path(self, path: str) -> str:
        return os.path.join(self._root, path)


def read_text_whole(path: str) -> str:
    """Return the text of a file of any length."""
    with open(path) as file:
        return file.read()

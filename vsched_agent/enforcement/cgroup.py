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

"""Where a thread's control groups are: v1, v2, or both side by side."""

import dataclasses
import os
import typing as ty


@dataclasses.dataclass(frozen=True, slots=True)
class Mount:
    """A mounted hierarchy.

    :param version: 1 or 2.
    :param point: where it is mounted.
    :param root: which of its groups appears there.
    """

    version: int
    point: str
    root: str


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """One thread's group under one controller.

    :param version: 1 or 2.
    :param path: the group's folder.
    :param mount: the folder of the hierarchy's top.
    """

    version: int
    path: str
    mount: str

    def file(self, name: str) -> str:
        """The path of a control file."""
        return os.path.join(self.path, name)

    @property
    def parent(self) -> 'Place | None':
        """The group above, None at the top."""
        if self.path == self.mount:
            return None
        return Place(self.version, os.path.dirname(self.path), self.mount)

    def read(self, name: str) -> str:
        """A control file's text.

        :raises FileNotFoundError: when the group or the file is gone.
        """
        return read_text(self.file(name))

    def threads(self) -> frozenset[int]:
        """The threads in the group itself."""
        return frozenset(int(tid) for tid in self.read(
            'tasks' if self.version == 1 else 'cgroup.threads').split())


def read_text(path: str) -> str:
    """A small file's text; the quick way, for what is read all the time.

    :raises FileNotFoundError: when it is not there, or its group went away
        under the reader's hands.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 65536).decode().strip()
    except OSError as failure:
        # kernfs says ENODEV when the group is removed while it is open.
        raise FileNotFoundError(
            failure.errno, failure.strerror, path) from None
    finally:
        os.close(descriptor)


class Cgroups:
    """The control groups of this host.

    :param root: the file system's top, for tests with a tree of their own.
    """

    def __init__(self, root: str = '/') -> None:
        self._root = root
        self._mounts: dict[str, Mount] | None = None

    @property
    def versions(self) -> frozenset[int]:
        """The cgroup versions mounted here."""
        return frozenset(
            mount.version for mount in self._all_mounts().values())

    def mount(self, controller: str) -> Mount | None:
        """Where a controller is mounted, None when it is not."""
        mounts = self._all_mounts()
        if controller in mounts:
            return mounts[controller]
        unified = mounts.get('')
        if unified is not None:
            try:
                offered = read_text(os.path.join(
                    unified.point, 'cgroup.controllers'))
            except FileNotFoundError:
                return None
            if controller in offered.split():
                return unified
        return None

    def place(self, tid: int, controller: str) -> Place | None:
        """The group a thread is in under a controller.

        :returns: None when the controller is not mounted, or the group is
            outside of what is mounted here.
        :raises ProcessLookupError: when the thread is gone.
        """
        mount = self.mount(controller)
        if mount is None:
            return None
        try:
            text = read_text(self._path('proc/%d/cgroup' % tid))
        except FileNotFoundError as failure:
            raise ProcessLookupError(failure.errno, 'thread %d' % tid
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

    def _all_mounts(self) -> dict[str, Mount]:
        if self._mounts is None:
            self._mounts = dict(self._parse())
        return self._mounts

    def _parse(self) -> ty.Iterator[tuple[str, Mount]]:
        # man 5 proc_pid_mountinfo: id, parent, device, root, mount point,
        # options, optional fields, "-", type, source, options.
        text = read_text_whole(self._path('proc/self/mountinfo'))
        for line in text.splitlines():
            left, _, right = line.partition(' - ')
            fields = left.split()
            kind, _, options = ([*right.split(' ', 2), '', ''])[:3]
            if kind not in ('cgroup', 'cgroup2'):
                continue
            point = self._path(_unescape(fields[4]).lstrip('/'))
            root = _unescape(fields[3])
            if kind == 'cgroup2':
                yield '', Mount(2, point, root)
            else:
                for name in options.split(','):
                    yield name, Mount(1, point, root)

    def _path(self, path: str) -> str:
        return os.path.join(self._root, path)


def read_text_whole(path: str) -> str:
    """A file's text, however long."""
    with open(path) as file:
        return file.read()


def _unescape(text: str) -> str:
    # The kernel writes blanks and backslashes in octal there.
    for code, character in (('\\040', ' '), ('\\011', '\t'),
                            ('\\012', '\n'), ('\\134', '\\')):
        text = text.replace(code, character)
    return text


def parse_cpus(text: str) -> frozenset[int]:
    """CPU numbers from the kernel's list format, as in ``0-2,5``."""
    cpus: set[int] = set()
    for part in text.strip().split(','):
        if part:
            first, _, last = part.partition('-')
            cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def format_cpus(cpus: ty.Iterable[int]) -> str:
    """CPU numbers in the kernel's list format."""
    return ','.join(str(cpu) for cpu in sorted(cpus))

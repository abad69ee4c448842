# SPDX-License-Identifier: Apache-2.0

"""Open control groups without following links or mounts.

A path that is checked and then opened may lead elsewhere the second time. Here
the kernel resolves a path once, from the open folder of the hierarchy:
openat2(2) with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS and
RESOLVE_NO_XDEV; one component after the other without following links on
kernels before 5.6, which have no such call. The group's files are then opened
in that folder.
"""

import ctypes
import errno
import functools
import os
import struct
import types
import typing as ty

#: Where control groups are mounted.
ROOT = '/sys/fs/cgroup'

#: The kernel's CGROUP_SUPER_MAGIC and CGROUP2_SUPER_MAGIC, by version.
MAGICS: ty.Mapping[int, int] = types.MappingProxyType(
    {0x0027_E0EB: 1, 0x6367_7270: 2}
)

#: The same on every architecture.
_OPENAT2 = 437
_HOW = struct.Struct('=QQQ')
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08
_NO_LINKS = _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ROOM = 65536

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = (
    ctypes.c_long,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_size_t,
)


class Group:
    """An open group of one hierarchy; a context manager.

    :param folder: descriptor of its folder, closed with it.
    :param version: of the hierarchy.
    :param path: as requested.
    :param depth: levels below the hierarchy's top.
    """

    def __init__(
        self, folder: int, version: int, path: str, depth: int
    ) -> None:
        self.folder = folder
        self.version = version
        self.path = path
        self.depth = depth

    def __enter__(self) -> ty.Self:
        return self

    def __exit__(self, *problem: object) -> None:
        os.close(self.folder)

    def read(self, name: str) -> str:
        """Return a control file's text.

        :param name: of the file, without a folder.
        :raises OSError: as the kernel has it.
        """
        descriptor = self._open(name, os.O_RDONLY)
        try:
            parts = iter(functools.partial(os.read, descriptor, _ROOM), b'')
            return b''.join(parts).decode().strip()
        finally:
            os.close(descriptor)

    def write(self, name: str, text: str) -> None:
        """Write a control file.

        :param name: of the file, without a folder.
        :raises OSError: as the kernel has it.
        """
        # One write(2): the kernel accepts a value as a whole or not at all.
        descriptor = self._open(name, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, text.encode() or b'\n')
        finally:
            os.close(descriptor)

    def threads(self) -> tuple[int, ...]:
        """Return the threads in the group itself.

        :raises OSError: as the kernel has it.
        """
        return tuple(
            int(tid)
            for tid in self.read(
                'tasks' if self.version == 1 else 'cgroup.threads'
            ).split()
        )

    def _open(self, name: str, flags: int) -> int:
        if not name or '/' in name or name in ('.', '..'):
            raise PermissionError('%r is no name of a control file' % name)
        return os.open(
            name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder
        )


def open_group(path: str) -> Group:
    """Open a group's folder.

    :param path: absolute, below :data:`ROOT`, without ``.``, ``..`` and
        links.
    :raises PermissionError: for any other path, or one that leads to another
        file system.
    :raises OSError: ENOENT when there is no such group.
    """
    parts = _below(path)
    top, version, depth = _hierarchy(parts, path)
    try:
        if depth:
            folder = _beneath(top, '/'.join(parts[-depth:]), path)
        else:
            folder = os.dup(top)
    finally:
        os.close(top)
    return Group(folder, version, path, depth)


def _below(path: str) -> list[str]:
    prefix = ROOT.rstrip('/') + '/'
    if path == ROOT:
        return []
    parts = path.removeprefix(prefix).split('/')
    if (
        not path.startswith(prefix)
        or '\0' in path
        or any(part in ('', '.', '..') for part in parts)
    ):
        raise PermissionError(
            '%r is refused: a path below %s is needed, without ., .. and '
            'empty parts' % (path, ROOT)
        )
    return parts


def _hierarchy(parts: list[str], path: str) -> tuple[int, int, int]:
    """Open the top of the hierarchy that a path is in.

    :returns: its descriptor and version, and how many parts are below it.
    """
    root = _root(ROOT)
    version = _version(root)
    if version:
        return os.dup(root), version, len(parts)
    if parts:
        top = _open_beneath(root, parts[0], _NO_LINKS, path)
        version = _version(top)
        if version:
            return top, version, len(parts) - 1
        os.close(top)
    raise PermissionError(
        '%r is refused: no cgroup hierarchy is mounted there' % path
    )


@functools.lru_cache(maxsize=1)
def _root(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _version(folder: int) -> int:
    """Return the cgroup version of a folder; 0 for none."""
    # struct statfs begins with f_type, a long.
    buffer = ctypes.create_string_buffer(256)
    if _libc.fstatfs(folder, buffer):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return MAGICS.get(ctypes.c_long.from_buffer(buffer).value, 0)


def _beneath(top: int, path: str, whole: str) -> int:
    return _open_beneath(top, path, _NO_LINKS | _NO_XDEV, whole)


def _open_beneath(top: int, path: str, resolve: int, whole: str) -> int:
    try:
        return openat2(top, path, _FOLDER, resolve)
    except OSError as failure:
        if failure.errno == errno.ENOSYS:
            return _step_by_step(top, path, bool(resolve & _NO_XDEV), whole)
        raise _refusal(failure, whole) from None


def openat2(folder: int, path: str, flags: int, resolve: int) -> int:
    """Open a path by openat2(2).

    :returns: a descriptor.
    :raises OSError: ENOSYS where the kernel has no such call; ELOOP for a
        link, EXDEV for a way out.
    """
    how = _HOW.pack(flags, 0, resolve)
    while True:
        descriptor = _syscall(
            _OPENAT2, folder, os.fsencode(path), how, len(how)
        )
        if descriptor >= 0:
            return int(descriptor)
        number = ctypes.get_errno()
        # EAGAIN: a concurrent rename.
        if number not in (errno.EAGAIN, errno.EINTR):
            raise OSError(number, os.strerror(number), path)


def _step_by_step(top: int, path: str, one_device: bool, whole: str) -> int:
    current = os.dup(top)
    device = os.fstat(top).st_dev
    try:
        for part in path.split('/'):
            below = os.open(part, _FOLDER, dir_fd=current)
            os.close(current)
            current = below
            if one_device and os.fstat(current).st_dev != device:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), part)
    except OSError as failure:
        os.close(current)
        raise _refusal(failure, whole) from None
    return current


def _refusal(failure: OSError, path: str) -> OSError:
    # ENOTDIR: a link where a folder is needed, without openat2.
    if failure.errno in (errno.ELOOP, errno.EXDEV, errno.ENOTDIR):
        return PermissionError(
            '%r is refused: a link, a file or another file system is on '
            'the way' % path
        )
    return OSError(failure.errno, failure.strerror, path)

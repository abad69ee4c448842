# SPDX-License-Identifier: Apache-2.0

"""Choose among several mounts of a cgroup hierarchy.

A hierarchy can be mounted any number of times: by a container's build, for a
chroot, by bind mounts of the whole tree or of one group. Such a mount may show
only a part of the hierarchy, may be hidden under another mount, and may be
temporary.
"""

import dataclasses
import os
import typing as ty

#: Where systemd and the distributions mount control groups.
STANDARD = '/sys/fs/cgroup'


@dataclasses.dataclass(frozen=True, slots=True)
class Mount:
    """A mounted hierarchy.

    :param version: 1 or 2.
    :param point: where it is mounted.
    :param root: the group that appears there.
    """

    version: int
    point: str
    root: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Line:
    """One line of mountinfo."""

    number: str
    parent: str
    root: str
    point: str
    kind: str
    options: tuple[str, ...]


def choose(text: str) -> dict[str, Mount]:
    """Choose one mount for each controller.

    Mounts that are hidden under other mounts are left out. Of the others, the
    whole hierarchy (root ``/``) is preferred to a part of it, a mount below
    :data:`STANDARD` to one elsewhere, and an earlier mount to a later one.

    :param text: of /proc/self/mountinfo.
    :returns: by controller; ``''`` is the unified hierarchy (version 2).
    """
    lines = list(_parse(text))
    visible = _Visible(lines)
    found: dict[str, tuple[tuple[bool, bool], Mount]] = {}
    for line in lines:
        if line.kind not in ('cgroup', 'cgroup2') or line not in visible:
            continue
        rank = (line.root != '/', not _below(line.point, STANDARD))
        version = 2 if line.kind == 'cgroup2' else 1
        mount = Mount(version, line.point, line.root)
        for controller in ('',) if version == 2 else line.options:
            if controller not in found or rank < found[controller][0]:
                found[controller] = rank, mount
    return {controller: mount for controller, (_, mount) in found.items()}


def _parse(text: str) -> ty.Iterator[_Line]:
    # man 5 proc_pid_mountinfo: id, parent, device, root, mount point,
    # options, optional fields, "-", type, source, options.
    for line in text.splitlines():
        left, _, right = line.partition(' - ')
        fields = left.split()
        if len(fields) < 5:
            continue
        kind, _, options = ([*right.split(' ', 2), '', ''])[:3]
        yield _Line(
            fields[0],
            fields[1],
            _unescape(fields[3]),
            _unescape(fields[4]),
            kind,
            tuple(options.split(',')),
        )


class _Visible:
    """Determines visible mounts from the table alone."""

    def __init__(self, lines: ty.Iterable[_Line]) -> None:
        lines = list(lines)
        numbers = {line.number for line in lines}
        self._children: dict[tuple[str, str], _Line] = {}
        for line in lines:
            # The parents of the topmost mounts are outside of the table or the
            # chroot; the first mount may be its own parent.
            parent = (
                line.parent
                if (line.parent in numbers and line.parent != line.number)
                else ''
            )
            # The last mount at a point hides the others.
            self._children[parent, line.point] = line

    def __contains__(self, line: _Line) -> bool:
        return self._at(line.point) == line

    def _at(self, point: str) -> _Line | None:
        """Return the mount of a path's last component."""
        current: _Line | None = None
        path = ''
        for part in ('', *point.strip('/').split('/')):
            path = os.path.join(path or '/', part)
            while (
                above := self._children.get(
                    (current.number if current else '', path)
                )
            ) is not None:
                current = above
        return current


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + '/')


def _unescape(text: str) -> str:
    # The kernel escapes blanks and backslashes in octal.
    for code, character in (
        ('\\040', ' '),
        ('\\011', '\t'),
        ('\\012', '\n'),
        ('\\134', '\\'),
    ):
        text = text.replace(code, character)
    return text

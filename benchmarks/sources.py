# SPDX-License-Identifier: Apache-2.0

"""The files that a benchmark exercises, derived from its imports.

These are its module, what that imports, and so on, as far as it lies in this
project; modules that are named in a string, as those of processes that are
started; and paths that a benchmark declares because no import leads there.

Python is compared without comments, docstrings and layout.
"""

import ast
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import hashlib
import pathlib
import re
import subprocess

#: The packages of this project.
PACKAGES = (
    'benchmarks',
    'nova_filters',
    'vsched_agent',
    'vsched_api',
    'vsched_client',
    'vsched_lib',
    'vsched_standalone',
)
#: By module, folders of modules that it imports under names that it makes.
IMPORTED_BY_NAME: Mapping[str, Sequence[str]] = {
    'vsched_api/db/migration.py': ('vsched_api/db/migrations',),
    'vsched_api/nouns.py': ('vsched_api/policies', 'vsched_api/rest'),
}
#: What all benchmarks share, and which measures nothing.
_SHARED = ('benchmarks/frame.py', 'benchmarks/targets.py')
#: Blobs that were read; commits share most of them.
_CONTENTS: dict[str, bytes] = {}
# A module's name, or module:attribute.
_NAME = re.compile(r'((?:%s)(?:\.\w+)+)(?::\w+)?' % '|'.join(PACKAGES))


class Tree:
    """The files of a commit, or of the working tree.

    :param root: of the repository.
    :param commit: the commit; None for the working tree, with files that no
        commit has yet.
    :raises subprocess.CalledProcessError: if there is no such commit.
    :raises OSError: if there is no git.
    """

    def __init__(self, root: pathlib.Path, commit: str | None = None) -> None:
        self._root = root
        self._commit = commit
        self._blobs = dict(self._list())
        if commit is not None:
            _load(
                root,
                {
                    blob
                    for name, blob in self._blobs.items()
                    if name.endswith('.py')
                },
            )

    def _list(self) -> Iterator[tuple[str, str]]:
        if self._commit is not None:
            for line in _git(
                self._root, 'ls-tree', '-r', '-z', self._commit
            ).split('\0'):
                if line:
                    facts, _, name = line.partition('\t')
                    yield name, facts.split()[2]
            return
        for name in _git(
            self._root,
            'ls-files',
            '-z',
            '--cached',
            '--others',
            '--exclude-standard',
        ).split('\0'):
            if name and (self._root / name).is_file():
                yield name, ''

    def below(self, path: str) -> list[str]:
        """Return the files at or below a path."""
        return [
            name
            for name in self._blobs
            if name == path or name.startswith(path + '/')
        ]

    def digest(self, name: str) -> str:
        """Return what changes when a file does."""
        return _digest(name, self._content(name))

    def imports(self, name: str) -> Iterator[str]:
        """Return the files of this project that a file of Python names."""
        for module in _names(self._content(name)):
            yield from self._files_of(module)

    def _content(self, name: str) -> bytes:
        if self._commit is None:
            return (self._root / name).read_bytes()
        blob = self._blobs[name]
        _load(self._root, {blob})
        return _CONTENTS[blob]

    def _files_of(self, module: str) -> Iterator[str]:
        """Return a module's file, and those of the packages around it."""
        parts = module.split('.')
        for length in range(1, len(parts) + 1):
            path = '/'.join(parts[:length])
            for file in (path + '/__init__.py', path + '.py'):
                if file in self._blobs:
                    yield file


def files(name: str, declared: Iterable[str], tree: Tree) -> list[str]:
    """Return what a benchmark exercises, sorted.

    :param name: of the benchmark.
    :param declared: paths to which no import leads.
    """
    known: set[str] = set()
    waiting = ['benchmarks/%s.py' % name]
    for path in declared:
        waiting += tree.below(path)
    while waiting:
        file = waiting.pop()
        if file in known or file in _SHARED:
            continue
        known.add(file)
        if file.endswith('.py'):
            waiting += tree.imports(file)
        for folder in IMPORTED_BY_NAME.get(file, ()):
            waiting += tree.below(folder)
    return sorted(known)


def digest(
    name: str,
    declared: Iterable[str],
    root: pathlib.Path,
    commit: str | None = None,
) -> str | None:
    """Return a digest of what a benchmark exercises.

    :param declared: paths to which no import leads.
    :param commit: the commit to read; None for the working tree.
    :returns: None if there is no git, no such commit, or no such benchmark
        in it.
    """
    try:
        tree = _tree(root, commit)
        if not tree.below('benchmarks/%s.py' % name):
            return None
        lines = [
            '%s %s\n' % (file, tree.digest(file))
            for file in files(name, declared, tree)
        ]
    except (OSError, subprocess.CalledProcessError):
        return None
    return hashlib.sha256(''.join(lines).encode()).hexdigest()[:16]


def _tree(root: pathlib.Path, commit: str | None) -> Tree:
    # The working tree changes.
    return Tree(root) if commit is None else _committed(root, commit)


@functools.cache
def _committed(root: pathlib.Path, commit: str) -> Tree:
    return Tree(root, commit)


def _load(root: pathlib.Path, blobs: set[str]) -> None:
    """Read blobs that are not read yet, all by one command."""
    missing = blobs - _CONTENTS.keys()
    if not missing:
        return
    rest = subprocess.run(
        ('git', '-C', str(root), 'cat-file', '--batch'),
        input=''.join(blob + '\n' for blob in missing).encode(),
        check=True,
        capture_output=True,
    ).stdout
    at = 0
    for _ in missing:
        end = rest.index(b'\n', at)
        blob, _, size = rest[at:end].decode().split()
        at = end + 1 + int(size)
        _CONTENTS[blob] = rest[end + 1 : at]
        # The newline after it.
        at += 1


@functools.cache
def _names(content: bytes) -> tuple[str, ...]:
    """Return the modules of this project that are named in a module."""
    found: dict[str, None] = {}
    for name in _Imports().of(ast.parse(content)):
        if name.partition('.')[0] in PACKAGES:
            found[name] = None
    return tuple(found)


class _Imports(ast.NodeVisitor):
    """Modules that are imported anywhere, and names of modules as strings."""

    def of(self, module: ast.Module) -> list[str]:
        self._found: list[str] = []
        self.visit(module)
        return self._found

    def visit_If(self, node: ast.If) -> None:
        if 'TYPE_CHECKING' in ast.dump(node.test):
            # Python does not run it.
            node = ast.If(node.test, [], node.orelse)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self._found += [one.name for one in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module and not node.level:
            # What is imported may be a module or something in one.
            self._found += [
                '%s.%s' % (node.module, one.name) for one in node.names
            ]

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            match = _NAME.fullmatch(node.value)
            if match:
                self._found.append(match[1])


@functools.cache
def _digest(name: str, content: bytes) -> str:
    if name.endswith('.py'):
        module = ast.parse(content)
        for node in ast.walk(module):
            _remove_docstring(node)
        if name.startswith('benchmarks/'):
            # What a benchmark says about itself.
            module.body = [node for node in module.body if not _is_about(node)]
        content = ast.dump(module).encode()
    return hashlib.sha256(content).hexdigest()


def _remove_docstring(node: ast.AST) -> None:
    if (
        isinstance(
            node,
            ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
        )
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
        and isinstance(node.body[0].value.value, str)
    ):
        del node.body[0]


def _is_about(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(one, ast.Name) and one.id == 'ABOUT' for one in node.targets
    )


def _git(root: pathlib.Path, *arguments: str) -> str:
    return subprocess.run(
        ('git', '-C', str(root), *arguments),
        check=True,
        capture_output=True,
        text=True,
    ).stdout

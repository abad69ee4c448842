# SPDX-License-Identifier: Apache-2.0

"""Find tests by their dotted names, without importing them.

Some modules need Nova or libvirt, and an import would start what they start.
"""

import ast
import functools
import os
import typing as ty

_ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))


class _Module(ty.NamedTuple):
    """The classes of a module, and what its imports stand for."""

    classes: dict[str, ast.ClassDef]
    imports: dict[str, str]


@functools.cache
def _read(name: str) -> _Module | None:
    path = os.path.join(_ROOT, *name.split('.')) + '.py'
    if not os.path.isfile(path):
        return None
    with open(path, encoding='utf-8') as file:
        tree = ast.parse(file.read())
    imports = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for one in node.names:
                imports[one.asname or one.name] = '%s.%s' % (
                    node.module,
                    one.name,
                )
    # Some modules choose a base class by what is installed.
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Name | ast.Attribute)
        ):
            imports.setdefault(node.targets[0].id, ast.unparse(node.value))
    return _Module(
        {
            node.name: node
            for node in tree.body
            if isinstance(node, ast.ClassDef)
        },
        imports,
    )


def _resolve(module: str, base: str) -> tuple[str, str]:
    """The module and the name of a base class, as its text says."""
    found = _read(module)
    assert found is not None
    if base in found.classes:
        return module, base
    head, _, rest = base.partition('.')
    dotted = found.imports.get(head, head) + ('.' + rest if rest else '')
    where, _, name = dotted.rpartition('.')
    return where, name


def _methods(module: str, name: str) -> tuple[set[str], bool]:
    """A class's test methods, and whether unittest would run it."""
    found = _read(module)
    if found is None or name not in found.classes:
        return set(), name.endswith('TestCase')
    node = found.classes[name]
    methods = {
        one.name
        for one in node.body
        if isinstance(one, ast.FunctionDef) and one.name.startswith('test')
    }
    runs = False
    for base in node.bases:
        more, one_runs = _methods(*_resolve(module, ast.unparse(base)))
        methods |= more
        runs |= one_runs
    return methods, runs


def problem(name: str) -> str | None:
    """Say why a name is that of no test.

    :param name: of a module, a class or a method, dotted.
    :returns: None when it is one that unittest would run.
    """
    parts = name.split('.')
    for length in range(len(parts), 0, -1):
        module = '.'.join(parts[:length])
        found = _read(module)
        if found is not None:
            break
    else:
        return '%s: there is no such module' % name
    rest = parts[length:]
    if not rest:
        if any(
            methods and runs
            for methods, runs in (
                _methods(module, one) for one in found.classes
            )
        ):
            return None
        return '%s: the module has no test' % name
    if rest[0] not in found.classes:
        return '%s: %s has no class %s' % (name, module, rest[0])
    methods, runs = _methods(module, rest[0])
    if not methods or not runs:
        return '%s: %s has no test that is run' % (name, rest[0])
    if len(rest) == 1 or rest[1:] == [rest[1]] and rest[1] in methods:
        return None
    return '%s: %s has no test %s' % (name, rest[0], '.'.join(rest[1:]))

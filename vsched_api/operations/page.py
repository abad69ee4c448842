# SPDX-License-Identifier: Apache-2.0

"""The built files of the operators' page, which the package vsched_ui has.

vsched_ui is a folder of files here: none of its code is imported.
"""

import dataclasses
import functools
import gzip
import hashlib
import importlib.util
import pathlib

from vsched_api.operations import errors

PACKAGE = 'vsched_ui'
INDEX = 'index.html'

#: The page's own address in the index, which differs behind a proxy.
BASE = b'<base href="/ui/">'

_ASSETS = 'assets'
_TYPES = {
    '.css': 'text/css; charset=utf-8',
    '.js': 'text/javascript; charset=utf-8',
    '.svg': 'image/svg+xml',
    '.woff2': 'font/woff2',
}
#: Fonts are compressed already, and short files are not worth it.
_ZIPPED = frozenset(('.css', '.js', '.svg'))
_ZIP_FROM_BYTES = 1_000


@dataclasses.dataclass(frozen=True, slots=True)
class File:
    """A file of the page.

    :param zipped: its content by gzip, if that is smaller.
    :param tag: changes with the content.
    """

    content: bytes
    zipped: bytes | None
    mimetype: str
    tag: str


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """All files of one build, as they were when it was read.

    They are kept in memory, so that an upgrade of the package does not mix
    an index with assets of another build.

    :param assets: by name, without a folder.
    """

    index: bytes
    assets: dict[str, File]


def folder() -> pathlib.Path | None:
    """Return where the built files are installed; None without them."""
    spec = importlib.util.find_spec(PACKAGE)
    places = () if spec is None else spec.submodule_search_locations or ()
    for place in places:
        path = pathlib.Path(place, 'static')
        if (path / INDEX).is_file():
            return path
    return None


def read() -> Page:
    """Return the page.

    :raises errors.NotFound: when its built files are not installed.
    """
    path = folder()
    if path is None:
        raise errors.NotFound(
            'the built files of the page are not installed: the package '
            '%s has no static/%s; "npm ci && npm run build" in the folder '
            '%s of the source makes them' % (PACKAGE, INDEX, PACKAGE)
        )
    return _read(path)


def asset(name: str) -> File:
    """Return one of the files that the index refers to.

    :raises errors.NotFound: when there is none of that name.
    """
    found = read().assets.get(name)
    if found is None:
        raise errors.NotFound('the page has no file of that name')
    return found


@functools.cache
def _read(path: pathlib.Path) -> Page:
    return Page(
        (path / INDEX).read_bytes(),
        {
            one.name: _file(one)
            for one in sorted((path / _ASSETS).iterdir())
            if one.suffix in _TYPES and one.is_file()
        },
    )


def _file(path: pathlib.Path) -> File:
    content = path.read_bytes()
    zipped = None
    if path.suffix in _ZIPPED and len(content) >= _ZIP_FROM_BYTES:
        # Without a time, for the same bytes in each process.
        zipped = gzip.compress(content, mtime=0)
    return File(content, zipped, _TYPES[path.suffix], digest(content))


def digest(content: bytes) -> str:
    """Return an entity tag for a content."""
    return hashlib.sha256(content).hexdigest()[:32]

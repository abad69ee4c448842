# SPDX-License-Identifier: Apache-2.0

"""The committed build is of the committed sources."""

import hashlib
import pathlib
import re

from oslotest import base

PACKAGE = pathlib.Path(__file__).resolve().parents[2]
STATIC = PACKAGE / 'static'

#: As in scripts/digest.mjs.
SOURCES = (
    'index.html',
    'package.json',
    'package-lock.json',
    'scripts',
    'src',
    'tsconfig.json',
    'vite.config.ts',
)


def files():
    """Return what a build is made of, by its name in the package."""
    found = {}
    for source in SOURCES:
        path = PACKAGE / source
        for one in [path] if path.is_file() else path.rglob('*'):
            name = one.relative_to(PACKAGE).as_posix()
            if one.is_file() and not re.search(r'\.test\.tsx?$', name):
                found[name] = one
    return found


def digest():
    """Return the digest of all sources."""
    found = hashlib.sha256()
    for name, path in sorted(files().items()):
        one = hashlib.sha256(path.read_bytes()).hexdigest()
        found.update(('%s  %s\n' % (one, name)).encode())
    return found.hexdigest()


class TestBuild(base.BaseTestCase):
    """Needs no Node."""

    def test_it_is_of_these_sources(self):
        self.assertLess(20, len(files()))
        self.assertEqual(
            digest(),
            (STATIC / 'sources.sha256').read_text().strip(),
            'vsched_ui/static is not built from vsched_ui/src: run "npm ci '
            '&& npm run build" in vsched_ui and commit both',
        )

    def test_it_is_whole(self):
        assets = {path.name for path in (STATIC / 'assets').iterdir()}
        self.assertNotEqual(set(), assets)
        for path in [STATIC / 'index.html', *(STATIC / 'assets').iterdir()]:
            if path.suffix not in ('.html', '.js', '.css'):
                continue
            for name in re.findall(
                r'["\'(/]([\w.-]+-[\w-]{8}\.(?:js|css|woff2|svg))["\')]',
                path.read_text(encoding='utf-8'),
            ):
                self.assertIn(name, assets, path.name)

    def test_nothing_is_inline_or_from_elsewhere(self):
        index = (STATIC / 'index.html').read_text()
        self.assertIn('<base href="/ui/"', index)
        self.assertNotRegex(index, r'(?i)<style|\sstyle=|\son\w+=')
        self.assertNotRegex(index, r'(?i)<script(?![^>]*\ssrc=)')
        self.assertNotRegex(index, r'(?i)(src|href)="(https?:)?//')

    def test_the_lock_file_names_no_registry(self):
        lock = (PACKAGE / 'package-lock.json').read_text()
        self.assertIn('"integrity"', lock)
        self.assertNotIn('"resolved"', lock)

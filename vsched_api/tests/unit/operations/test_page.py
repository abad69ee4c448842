# SPDX-License-Identifier: Apache-2.0

"""Which files the page has, and how they are kept."""

import gzip
import pathlib

import fixtures
from oslotest import base

from vsched_api.operations import errors
from vsched_api.operations import page


class TestFiles(base.BaseTestCase):
    """A build of its own."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (self.folder / 'assets' / 'deeper.js').mkdir(parents=True)
        for name, content in (
            ('index.html', b'<base href="/ui/">'),
            ('sources.sha256', b'0'),
            ('assets/long.js', b'text ' * 1000),
            ('assets/short.css', b'a{}'),
            ('assets/font.woff2', b'\0' * 5000),
            ('assets/unknown.exe', b'MZ'),
        ):
            (self.folder / name).write_bytes(content)
        self.useFixture(
            fixtures.MockPatchObject(page, 'folder', lambda: self.folder)
        )

    def test_assets_are_files_of_known_types(self):
        self.assertEqual(
            {
                'font.woff2': 'font/woff2',
                'long.js': 'text/javascript; charset=utf-8',
                'short.css': 'text/css; charset=utf-8',
            },
            {name: one.mimetype for name, one in page.read().assets.items()},
        )

    def test_what_gets_smaller_is_compressed(self):
        found = page.read().assets
        self.assertIsNone(found['font.woff2'].zipped)
        self.assertIsNone(found['short.css'].zipped)
        self.assertEqual(
            found['long.js'].content, gzip.decompress(found['long.js'].zipped)
        )

    def test_the_build_that_was_read_stays(self):
        before = page.asset('short.css')
        (self.folder / 'assets' / 'short.css').write_bytes(b'b{}')
        self.assertEqual(before, page.asset('short.css'))

    def test_others_are_not_found(self):
        for name in ('sources.sha256', '../index.html', 'unknown.exe', ''):
            self.assertRaises(errors.NotFound, page.asset, name)
        self.assertNotEqual(
            page.asset('short.css').tag, page.asset('long.js').tag
        )


class TestInstalled(base.BaseTestCase):
    """What this tree has."""

    def test_the_folder_is_found_without_importing(self):
        self.assertEqual('static', page.folder().name)

    def test_the_index_names_its_base(self):
        self.assertEqual(1, page.read().index.count(page.BASE))

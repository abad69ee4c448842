# SPDX-License-Identifier: Apache-2.0

"""The contributor guide names files and modules that exist."""

import pathlib
import re

from oslotest import base

ROOT = pathlib.Path(__file__).resolve().parents[3]
GUIDE = ROOT / 'doc' / 'source' / 'contributor'
PACKAGES = '(?:nova_filters|vsched_(?:agent|api|client|lib|standalone|ui))'


def exists(name):
    """Return whether there is a module or a name in one, without importing."""
    path = ROOT.joinpath(*name.split('.'))
    if path.is_dir() or path.with_suffix('.py').is_file():
        return True
    module = path.parent.with_suffix('.py')
    return module.is_file() and bool(
        re.search(
            r'^(?:class |def |)%s\b' % path.name, module.read_text(), re.M
        )
    )


class ArchitectureTestCase(base.BaseTestCase):
    def test_two_pages(self):
        lines = (GUIDE / 'architecture.rst').read_text().splitlines()
        self.assertLess(len(lines), 240)

    def test_files_of_the_map_exist(self):
        page = (GUIDE / 'architecture.rst').read_text()
        _, _, rest = page.partition('\nWhere is it?\n=')
        names = re.findall(r'``(%s/[\w./]*)``' % PACKAGES, rest)
        self.assertLessEqual(10, len(names))
        for name in names:
            self.assertTrue((ROOT / name).exists(), name)

    def test_names_in_the_guides_exist(self):
        for page in ('extending.rst', 'testing.rst'):
            text = (GUIDE / page).read_text()
            names = re.findall(r'``(%s\.[\w.]+)``' % PACKAGES, text)
            self.assertNotEqual([], names)
            for name in names:
                self.assertTrue(exists(name), name)

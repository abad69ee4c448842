# SPDX-License-Identifier: Apache-2.0

"""The maintainer scripts of the Debian packages, without dpkg.

``tools.tests.functional.test_packages`` runs them in a new Debian root.
"""

import collections
import pathlib
import re
import subprocess

import fixtures
from oslotest import base

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEBIAN = ROOT / 'packaging' / 'debian'
UNITS = ROOT / 'etc' / 'vsched' / 'systemd'

#: Below which folder systemd makes the one that a setting names.
PARENTS = {'RuntimeDirectory': '/run', 'StateDirectory': '/var/lib'}


def scripts():
    """Return the maintainer scripts."""
    return sorted(
        path
        for end in ('preinst', 'postinst', 'prerm', 'postrm')
        for path in DEBIAN.glob('*.' + end)
    )


def folders():
    """Return what the units of each package make outside of it."""
    found = collections.defaultdict(set)
    for path in DEBIAN.glob('*.install'):
        for line in path.read_text().splitlines():
            place = pathlib.PurePath(line)
            if place.parent.name != 'system':
                continue
            for unit in UNITS.glob(place.name):
                found[path.stem] |= set(made_by(unit.read_text()))
    return {name: made for name, made in found.items() if made}


def made_by(unit):
    """Yield the folders that systemd makes for a unit."""
    for name, parent in PARENTS.items():
        for one in re.findall('^%s=(.+)$' % name, unit, re.MULTILINE):
            yield parent + '/' + one
    for path in re.findall('^ListenStream=(/.+)$', unit, re.MULTILINE):
        yield str(pathlib.PurePath(path).parent)


class StyleTestCase(base.BaseTestCase):
    def test_each_is_valid(self):
        self.assertLess(5, len(scripts()))
        for path in scripts():
            done = subprocess.run(
                ('sh', '-n', str(path)), capture_output=True, check=False
            )
            self.assertEqual((0, b''), (done.returncode, done.stderr), path)

    def test_each_ends_at_the_first_failure(self):
        for path in scripts():
            lines = path.read_text().splitlines()
            self.assertEqual(
                [
                    '#!/bin/sh',
                    '# SPDX-License-Identifier: Apache-2.0',
                    'set -e',
                ],
                lines[:3],
                path,
            )
            # debhelper replaces it, and adds nothing without it.
            self.assertEqual('#DEBHELPER#', lines[-1], path)


class PurgeTestCase(base.BaseTestCase):
    """The postrm of each package, with paths below a temporary folder."""

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def run_postrm(self, package, action):
        text = (DEBIAN / (package + '.postrm')).read_text()
        # Each absolute path, wherever it points to.
        text = re.sub(r'(?<![\w!])/', '%s/' % self.root, text)
        done = subprocess.run(
            ('sh', '-s', action),
            input=text,
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual((0, ''), (done.returncode, done.stderr), package)

    def make(self, folder):
        """Make a folder with a file in it."""
        path = self.root / folder.removeprefix('/')
        path.mkdir(parents=True, exist_ok=True)
        (path / 'file').touch()
        return path

    def test_units_make_folders(self):
        self.assertEqual(
            {
                'vsched-agent': {'/run/vsched-helpers', '/var/lib/vsched'},
                'vsched-api': {'/run/vsched-api'},
            },
            folders(),
        )

    def test_what_units_have_made_is_deleted(self):
        """systemd may not run, and keeps the state of a unit anyway."""
        for package, made in folders().items():
            paths = [self.make(one) for one in made]
            self.run_postrm(package, 'remove')
            for path in paths:
                self.assertTrue((path / 'file').exists(), path)
            self.run_postrm(package, 'purge')
            for path in paths:
                self.assertFalse(path.exists(), path)

    def test_what_others_have_made_stays(self):
        for path in DEBIAN.glob('*.postrm'):
            if path.stem == 'vsched':
                # The last one to go.
                continue
            kept = [
                self.make(one)
                for one in ('/etc/vsched', '/run/other', '/var/lib/other')
            ]
            self.run_postrm(path.stem, 'purge')
            for one in kept:
                self.assertTrue((one / 'file').exists(), path)

    def test_an_empty_folder_of_options_is_deleted(self):
        for path in DEBIAN.glob('*.postrm'):
            options = self.make('/etc/vsched')
            (options / 'file').unlink()
            self.run_postrm(path.stem, 'purge')
            self.assertFalse(options.exists(), path)
            # Nothing is left to delete.
            self.run_postrm(path.stem, 'purge')

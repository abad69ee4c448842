# SPDX-License-Identifier: Apache-2.0

"""The wheel and the Debian packages: built, installed, purged.

Needs root, Debian's archive and PyPI. The installation guide is run by
``tools/fresh-root.sh`` without ``--quick``, which takes minutes more.
"""

import email.parser
import pathlib
import shutil
import subprocess
import tempfile
import zipfile

from oslotest import base

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: Only a hang takes as long.
BUILD_S = 800
INSTALL_S = 280

PACKAGES = {
    'vsched',
    'vsched-agent',
    'vsched-api',
    'vsched-collector',
    'vsched-common',
    'vsched-guest',
}


def run(*words, timeout_s):
    """Run a command; return its output, which is in the error otherwise."""
    done = subprocess.run(
        words,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    if done.returncode:
        raise AssertionError(
            '%s: exit status %d\n%s'
            % (' '.join(words), done.returncode, done.stdout[-8000:])
        )
    return done.stdout


class TestPackages(base.BaseTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Not below /tmp, which may be small: the packages have 150 MB.
        cls.folder = pathlib.Path(tempfile.mkdtemp(dir='/var/tmp'))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run(
            'tools/packages.sh', '--output', str(cls.folder), timeout_s=BUILD_S
        )

    def control(self, path):
        """Return the fields of a package."""
        return email.parser.HeaderParser().parsestr(
            run('dpkg-deb', '--field', str(path), timeout_s=60)
        )

    def contents(self, name):
        """Return the owner and the mode of each file of a package."""
        (path,) = self.folder.glob(name + '_*.deb')
        found = {}
        for line in run(
            'dpkg-deb', '--contents', str(path), timeout_s=60
        ).splitlines():
            mode, owner, _, _, _, file = line.split(None, 5)
            found[file.partition(' -> ')[0].removeprefix('.')] = owner, mode
        return found

    def test_the_wheel(self):
        (path,) = self.folder.glob('*.whl')
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
        self.assertEqual([], [name for name in names if '/tests/' in name])
        for part in (
            '/data/share/vsched/etc/systemd/vsched-agent.service',
            '/data/share/vsched/etc/vsched-api.conf.sample',
            'vsched_api/db/migrations/script.py.mako',
            'vsched_api/db/migrations/versions/0001_initial.py',
            'vsched_standalone/demo/fleet.py',
        ):
            self.assertEqual(
                1, len([name for name in names if name.endswith(part)]), part
            )

    def test_the_packages(self):
        found = {
            fields['Package']: fields
            for fields in map(self.control, self.folder.glob('*.deb'))
        }
        self.assertEqual(PACKAGES, found.keys())
        self.assertEqual(1, len({one['Version'] for one in found.values()}))
        for name in ('vsched-api', 'vsched-collector'):
            self.assertIn('vsched-common (= ', found[name]['Depends'])
        self.assertNotIn('vsched-common', found['vsched-agent']['Depends'])

    def test_contents(self):
        for name, files in (
            (
                'vsched-agent',
                (
                    '/etc/vsched/vsched-agent.conf',
                    '/usr/bin/vsched-agent',
                    '/usr/lib/systemd/system/vsched-agent.service',
                    '/usr/lib/systemd/system/vsched-helper-sched@.service',
                    '/usr/lib/sysusers.d/vsched-agent.conf',
                ),
            ),
            (
                'vsched-common',
                ('/etc/vsched/vsched.conf', '/usr/bin/vsched-manage'),
            ),
            ('vsched-api', ('/etc/vsched/vsched-api-uwsgi.ini',)),
            ('vsched-guest', ('/var/cache/vsched/guest',)),
            ('vsched', ('/opt/vsched/bin/uwsgi', '/usr/bin/vsched-demo')),
        ):
            found = self.contents(name)
            for file in files:
                self.assertIn(file, found, name)
            # Helpers run what is in there with capabilities.
            self.assertEqual(
                {'root/root'}, {owner for owner, _ in found.values()}, name
            )
            self.assertEqual(
                [],
                [
                    file
                    for file, (_, mode) in found.items()
                    if mode[0] != 'l' and 'w' in mode[4:]
                ],
                name,
            )

    def test_they_install_and_purge(self):
        said = run(
            'tools/fresh-root.sh',
            '--quick',
            '--packages',
            str(self.folder),
            timeout_s=INSTALL_S,
        )
        for words in (
            'all commands run',
            'the units are valid',
            'nothing is left but the users',
        ):
            self.assertIn(words, said)
        self.assertEqual('passed', said.splitlines()[-1])

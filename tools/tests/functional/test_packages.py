# SPDX-License-Identifier: Apache-2.0

"""The wheel and the Debian packages: built, installed by the guide, purged.

Needs root, Debian's archive, PyPI and Chromium.
"""

import email.parser
import pathlib
import shutil
import tempfile
import zipfile

import fixtures
from oslotest import base

from tools.tests.functional import commands

#: Only a hang takes as long; below the silence that ends a run.
BUILD_S = 1600
ROOT_S = 1600

PACKAGES = {
    'vsched',
    'vsched-agent',
    'vsched-api',
    'vsched-client',
    'vsched-collector',
    'vsched-common',
    'vsched-guest',
}
#: Where Debian's openstack finds its plugins.
PLUGINS = '/usr/lib/python3/dist-packages/'
EXAMPLES = '/usr/share/doc/vsched/examples/'


class TestPackages(base.BaseTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Not below /tmp, which may be small: the packages have 150 MB.
        cls.folder = pathlib.Path(tempfile.mkdtemp(dir='/var/tmp'))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        commands.run(
            'tools/packages.sh', '--output', str(cls.folder), timeout_s=BUILD_S
        )

    def control(self, path):
        """Return the fields of a package."""
        return email.parser.HeaderParser().parsestr(
            commands.run('dpkg-deb', '--field', str(path), timeout_s=60)
        )

    def contents(self, name):
        """Return the owner and the mode of each file of a package."""
        (path,) = self.folder.glob(name + '_*.deb')
        found = {}
        for line in commands.run(
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
        # For machines that have nothing else of it.
        self.assertNotIn('vsched', found['vsched-client']['Depends'])

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
            ('vsched-client', (PLUGINS + 'vsched_client/osc/plugin.py',)),
            ('vsched-guest', ('/var/cache/vsched/guest',)),
            (
                'vsched',
                (
                    '/opt/vsched/bin/uwsgi',
                    '/usr/bin/vsched-demo',
                    EXAMPLES + 'grafana/agent.json',
                    EXAMPLES + 'grafana/fleet.json',
                    EXAMPLES + 'nginx-vsched.conf',
                    EXAMPLES + 'prometheus/rules.yaml',
                    EXAMPLES + 'vsched-api.conf.sample',
                ),
            ),
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

    def fresh_root(self, *words):
        """Return what tools/fresh-root.sh prints."""
        # Longer than a test may take by default.
        self.useFixture(fixtures.Timeout(ROOT_S + 60, gentle=True))
        said = commands.run(
            'tools/fresh-root.sh',
            '--packages',
            str(self.folder),
            *words,
            timeout_s=ROOT_S,
        )
        self.assertEqual('passed', said.splitlines()[-1])
        return said

    def test_the_guide(self):
        said = self.fresh_root('--part', 'guide')
        for words in (
            'all commands run',
            'openstack has the commands of python3-openstackclient',
            'the units are valid',
            '"openstack cpu reservation create" has made a reservation',
            'page: the reservation is shown with 30.0 %, applied',
        ):
            self.assertIn(words, said)
        # With no service started, and after the guide.
        self.assertEqual(2, said.count('nothing is left but the users'))

    def test_the_guide_for_a_virtual_environment(self):
        said = self.fresh_root('--part', 'venv')
        for words in (
            'a virtual environment has version',
            'nova finds VschedAllocationErrorFilter',
        ):
            self.assertIn(words, said)

# SPDX-License-Identifier: Apache-2.0

"""``openstack`` as a process of its own, which finds the plugin itself."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import fixtures
from oslotest import base

from vsched_client.tests import entry_points
from vsched_client.tests.functional import api


class TestProcess(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.environment = entry_points.install(
            self.useFixture(fixtures.TempDir()).path
        )

    def openstack(self, *words, code=0):
        done = subprocess.run(
            entry_points.command_line(*words),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(code, done.returncode, done)
        return done

    def test_commands(self):
        url = self.useFixture(api.Api()).url
        without_keystone = ('--os-auth-type', 'none', '--os-endpoint', url)
        found = self.openstack(
            *without_keystone, 'cpu', 'host', 'list', '-f', 'json'
        )
        self.assertEqual(
            ['node1', 'node2', 'node3'],
            [one['name'] for one in json.loads(found.stdout)],
        )
        found = self.openstack(
            *without_keystone,
            *('cpu', 'reservation', 'set', api.RESERVED),
            *('--share', '99%', '--wait'),
            code=3,
        )
        self.assertIn('2000 mcpu needed exceed 1800 mcpu', found.stderr)
        # By the environment, as scripts do.
        self.environment.update(OS_AUTH_TYPE='none', OS_ENDPOINT=url)
        found = self.openstack(
            'cpu', 'job', 'list', '-f', 'json', '--host', 'node1'
        )
        self.assertEqual([], json.loads(found.stdout))

    def test_completion(self):
        text = self.openstack('complete').stdout
        for command in entry_points.commands():
            self.assertIn('cmds_%s=' % command.replace(' ', '_'), text)

    def test_help(self):
        text = self.openstack('--help').stdout
        for command in entry_points.commands():
            self.assertIn('\n  %s ' % command, text)
        self.assertIn('--os-vsched-api-version', text)

    def test_another_version(self):
        found = self.openstack(
            '--os-vsched-api-version', '2', 'cpu', 'host', 'list', code=1
        )
        self.assertIn('accepted: 1 or 1.N', found.stderr)


class TestWheel(base.BaseTestCase):
    """The distribution of the client alone."""

    def test_wheel(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        # What a build leaves is left there.
        shutil.copytree(
            entry_points.ROOT / 'vsched_client',
            folder / 'source',
            ignore=shutil.ignore_patterns(
                'build', '*.egg-info', '__pycache__'
            ),
        )
        done = subprocess.run(
            (
                *(sys.executable, '-m', 'pip', 'wheel', '--no-deps'),
                *('--no-build-isolation', '--wheel-dir', str(folder)),
                str(folder / 'source'),
            ),
            env={**os.environ, 'PBR_VERSION': '7.8.9'},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        (path,) = folder.glob('*.whl')
        self.assertEqual('vsched_client-7.8.9-py3-none-any.whl', path.name)
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            points = wheel.read(
                'vsched_client-7.8.9.dist-info/entry_points.txt'
            ).decode()
            wheel.extractall(folder / 'installed')
        self.assertIn('vsched_client/osc/v1/hosts.py', names)
        self.assertIn('vsched_client/py.typed', names)
        self.assertEqual([], [one for one in names if '/tests/' in one])
        for name, value in entry_points.declared()[
            entry_points.COMMANDS
        ].items():
            self.assertIn('%s = %s\n' % (name, value), points)
        # It needs nothing else of vsched.
        done = subprocess.run(
            (
                *(sys.executable, '-W', 'ignore', '-c'),
                'import sys; import vsched_client.v1.client as client; '
                'print(client.__file__, "vsched_lib" in sys.modules)',
            ),
            cwd=folder,
            env={
                'PATH': os.environ['PATH'],
                'PYTHONPATH': str(folder / 'installed'),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual(
            '%s False\n'
            % (folder / 'installed' / 'vsched_client' / 'v1' / 'client.py'),
            done.stdout,
        )

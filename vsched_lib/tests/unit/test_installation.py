# SPDX-License-Identifier: Apache-2.0

import configparser
import contextlib
import io
import pathlib
import re
import stat
import sys

import fixtures
from oslotest import base

from vsched_lib import installation

ROOT = pathlib.Path(__file__).parents[3]


class InstallationTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def run_command(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = installation.main(['--root', str(self.root), *words])
        return code, out.getvalue(), err.getvalue()

    def files(self):
        return {
            path.relative_to(self.root).as_posix()
            for path in self.root.rglob('*')
            if path.is_file()
        }


class TestInstall(InstallationTestCase):
    def test_the_agent(self):
        self.assertEqual(0, self.run_command('agent')[0])
        found = self.files()
        for name in (
            'etc/systemd/system/vsched-agent.service',
            'etc/systemd/system/vsched-helper-sched.socket',
            'etc/systemd/system/vsched-helper-sched@.service',
            'etc/sysusers.d/vsched-agent.conf',
            'etc/tmpfiles.d/vsched-agent.conf',
            'etc/vsched/vsched-agent.conf',
        ):
            self.assertIn(name, found)
        # No part of controllers.
        self.assertNotIn('etc/vsched/vsched.conf', found)
        self.assertNotIn('etc/systemd/system/vsched-api.service', found)

    def test_a_package(self):
        self.run_command('--vendor', 'api', 'collector')
        self.assertEqual(
            {
                'etc/vsched/policy.yaml',
                'etc/vsched/vsched-api-uwsgi.ini',
                'etc/vsched/vsched.conf',
                'usr/lib/systemd/system/vsched-api.service',
                'usr/lib/systemd/system/vsched-collector.service',
                'usr/lib/sysusers.d/vsched.conf',
                'usr/lib/tmpfiles.d/vsched.conf',
            },
            self.files(),
        )

    def test_commands_are_those_of_the_environment(self):
        self.run_command('--commands', '/opt/vsched/bin', 'agent', 'api')
        for path in (self.root / 'etc/systemd/system').iterdir():
            if path.name.endswith('.service'):
                unit = configparser.RawConfigParser(strict=False)
                unit.read(path)
                self.assertTrue(
                    unit['Service']['ExecStart'].startswith(
                        '/opt/vsched/bin/'
                    ),
                    path.name,
                )

    def test_the_default_is_the_python_that_runs_it(self):
        self.run_command('collector')
        text = (
            self.root / 'etc/systemd/system/vsched-collector.service'
        ).read_text()
        self.assertIn(
            'ExecStart=%s/vsched-collector\n'
            % pathlib.Path(sys.executable).parent,
            text,
        )

    def test_files_with_passwords_are_not_readable_by_others(self):
        self.run_command('agent', 'api')
        for name, mode in (
            ('vsched.conf', 0o640),
            ('vsched-agent.conf', 0o640),
            ('policy.yaml', 0o644),
        ):
            path = self.root / 'etc/vsched' / name
            self.assertEqual(mode, stat.S_IMODE(path.stat().st_mode), name)

    def test_configuration_is_kept_and_units_are_written_again(self):
        self.run_command('agent')
        config = self.root / 'etc/vsched/vsched-agent.conf'
        unit = self.root / 'etc/systemd/system/vsched-agent.service'
        config.write_text('mine')
        unit.write_text('mine')
        code, out, _ = self.run_command('agent')
        self.assertEqual(0, code)
        self.assertIn('%s: kept\n' % config, out)
        self.assertIn('%s: written\n' % unit, out)
        self.assertEqual('mine', config.read_text())
        self.assertNotEqual('mine', unit.read_text())

    def test_a_folder_that_cannot_be_written_is_named(self):
        (self.root / 'etc').write_text('a file')
        code, _, err = self.run_command('agent')
        self.assertEqual(1, code)
        self.assertIn(str(self.root / 'etc'), err)


class TestAdapted(base.BaseTestCase):
    def test_other_commands_stay(self):
        commands = pathlib.Path('/venv/bin')
        for text, expected in (
            ('=/usr/bin/vsched-agent run', '=/venv/bin/vsched-agent run'),
            ('=/usr/bin/python3 -I', '=/venv/bin/python3 -I'),
            ('=/usr/bin/uwsgi --ini', '=/venv/bin/uwsgi --ini'),
            ('=/bin/kill -HUP', '=/bin/kill -HUP'),
            ('=/usr/bin/python3.11', '=/usr/bin/python3.11'),
        ):
            self.assertEqual(expected, installation.adapted(text, commands))


class TestShipped(base.BaseTestCase):
    def test_wheels_have_every_file(self):
        """``options.data_files`` names all that the command installs."""
        setup = configparser.ConfigParser(interpolation=None)
        setup.read(ROOT / 'setup.cfg', encoding='utf-8')
        shipped = set()
        for target, patterns in setup['options.data_files'].items():
            for pattern in patterns.split():
                for path in ROOT.glob(pattern):
                    shipped.add(
                        '%s/%s'
                        % (target.removeprefix('share/vsched/etc'), path.name)
                    )
        names = installation.names(
            ROOT / 'etc/vsched', list(installation.SERVICES)
        )
        self.assertLess(20, len(names))
        self.assertEqual(set(), {'/' + name for name in names} - shipped)

    def test_every_unit_belongs_to_a_service(self):
        names = installation.names(
            ROOT / 'etc/vsched', list(installation.SERVICES)
        )
        for kind in ('systemd', 'sysusers.d', 'tmpfiles.d'):
            self.assertEqual(
                {
                    '%s/%s' % (kind, path.name)
                    for path in (ROOT / 'etc/vsched' / kind).iterdir()
                },
                {name for name in names if name.startswith(kind + '/')},
            )

    def test_no_unit_calls_another_command_of_usr_bin(self):
        for path in (ROOT / 'etc/vsched/systemd').iterdir():
            text = installation.adapted(
                path.read_text(), pathlib.Path('/venv/bin')
            )
            self.assertEqual([], re.findall('/usr/bin/.*', text), path.name)

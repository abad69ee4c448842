# SPDX-License-Identifier: Apache-2.0

"""What ``etc`` ships, against the code that it starts."""

import configparser
import pathlib
import re
import shutil
import subprocess
import sys

import ddt
from oslo_privsep import capabilities
from oslotest import base

from vsched_agent import privileged
from vsched_agent.privileged import context as contexts
from vsched_agent.privileged import isolated

_ROOT = pathlib.Path(__file__).parents[4]
_ETC = _ROOT / 'etc' / 'vsched'
_UNITS = _ETC / 'systemd'
_NAMES = sorted(privileged.CONTEXTS)


def _command(*words):
    return ' '.join(
        isolated.command(
            '-W', 'ignore', '-m', 'vsched_agent.privileged.helper', *words
        )
    ).replace(sys.executable, '/usr/bin/python3')


def _unit(name):
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read(_UNITS / name)
    return parser


@ddt.ddt
class TestUnits(base.BaseTestCase):
    @ddt.data(*_NAMES)
    def test_a_helpers_unit(self, name):
        service = _unit('vsched-helper-%s@.service' % name)['Service']
        self.assertEqual(_command('--foreground', name), service['ExecStart'])
        self.assertEqual('socket', service['StandardInput'])
        (wanted,) = privileged.CONTEXTS[name].conf.capabilities
        capability = capabilities.CAPS_BYVALUE[wanted]
        self.assertEqual(capability, service['CapabilityBoundingSet'])
        self.assertEqual('yes', service['NoNewPrivileges'])
        if service.get('User') != 'root':
            self.assertEqual(
                ('yes', capability),
                (service['DynamicUser'], service['AmbientCapabilities']),
            )

    @ddt.data(*_NAMES)
    def test_its_socket(self, name):
        socket = _unit('vsched-helper-%s.socket' % name)['Socket']
        context = privileged.CONTEXTS[name]
        self.assertEqual(
            contexts.SOCKET % context.name, socket['ListenStream']
        )
        self.assertEqual(
            ('yes', 'vsched-agent', '0600'),
            (socket['Accept'], socket['SocketUser'], socket['SocketMode']),
        )

    def test_every_unit_is_of_a_helper_or_a_service(self):
        self.assertEqual(
            {
                'vsched-agent.service',
                'vsched-api.service',
                'vsched-collector.service',
                *('vsched-helper-%s@.service' % name for name in _NAMES),
                *('vsched-helper-%s.socket' % name for name in _NAMES),
            },
            {path.name for path in _UNITS.iterdir()},
        )

    @ddt.data(
        ('agent', 'vsched-agent'), ('api', 'vsched'), ('collector', 'vsched')
    )
    @ddt.unpack
    def test_services_have_no_privilege(self, name, user):
        service = _unit('vsched-%s.service' % name)['Service']
        self.assertEqual(
            (user, user, '', 'yes', 'strict'),
            tuple(
                service[key]
                for key in (
                    'User',
                    'Group',
                    'CapabilityBoundingSet',
                    'NoNewPrivileges',
                    'ProtectSystem',
                )
            ),
        )

    def test_the_agent_wants_its_helpers(self):
        text = (_UNITS / 'vsched-agent.service').read_text()
        for name in _NAMES:
            self.assertEqual(
                name not in privileged.OPTIONAL,
                '\nWants=vsched-helper-%s.socket\n' % name in text,
            )

    def test_sudo_starts_helpers_and_nothing_else(self):
        text = (_ETC / 'sudoers.d' / 'vsched-agent').read_text()
        alias = re.search(
            r'^Cmnd_Alias VSCHED_HELPERS = (.*?[^\\])$',
            text,
            re.MULTILINE | re.DOTALL,
        )[1]
        self.assertEqual(
            [
                _command(name)
                for name in _NAMES
                if name not in privileged.OPTIONAL
            ],
            [
                ' '.join(one.replace('\\', '').split())
                for one in alias.split(',')
            ],
        )
        self.assertNotRegex(
            re.sub('^#.*', '', text, flags=re.MULTILINE), r'[*?\[]'
        )

    def test_exposure(self):
        """The figures of the installation guide are systemd's own."""
        if not shutil.which('systemd-analyze'):
            self.skipTest('no systemd-analyze here')
        done = subprocess.run(
            (_ROOT / 'tools' / 'unit-security.sh',),
            capture_output=True,
            text=True,
        )
        self.assertEqual(0, done.returncode, done.stderr)
        guide = (
            _ROOT / 'doc' / 'source' / 'install' / 'agent.rst'
        ).read_text()
        self.assertEqual(
            sorted(line.split() for line in done.stdout.splitlines()),
            sorted(
                list(one)
                for one in re.findall(
                    r'\* - ``(vsched-[a-z@-]+\.service)``\n'
                    r'     - [^\n]*\n     - ([0-9.]+)\n',
                    guide,
                )
            ),
        )

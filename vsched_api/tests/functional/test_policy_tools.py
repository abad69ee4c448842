# SPDX-License-Identifier: Apache-2.0

"""The commands of oslo.policy and oslo.config, on what we ship."""

import configparser
import glob
import importlib.metadata
import json
import os
import subprocess
import sys

import fixtures

from vsched_api.tests import base
from vsched_api.tests import databases

PATIENCE_S = 120
ROOT = os.path.abspath(
    os.path.join(os.path.dirname(__file__), '..', '..', '..')
)
SAMPLES = os.path.join(ROOT, 'etc', 'vsched')

_ACCESS = {
    'token': {
        'user': {'id': 'u'},
        'project': {'id': 'p'},
        'roles': [{'name': 'reader'}],
    }
}


class Tools(base.TestCase):
    """A test that runs commands."""

    def run_tool(self, name, *arguments, **environment):
        """What a command says; it must succeed."""
        path = os.path.join(os.path.dirname(sys.executable), name)
        done = subprocess.run(
            [path, *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            env={**os.environ, 'PYTHONWARNINGS': 'ignore', **environment},
        )
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout


class TestPolicyTools(Tools):
    """By the namespace vsched."""

    def setUp(self):
        super().setUp()
        if not importlib.metadata.entry_points(
            group='oslo.policy.enforcer', name='vsched'
        ):
            self.fail(
                'the package was installed before it had the entry '
                'point: install it anew'
            )
        self.policies = databases.write(
            self, '"vsched:hosts:list": "role:admin"\n'
        )
        self.options = databases.write(
            self, '[oslo_policy]\npolicy_file = %s\n' % self.policies
        )

    def test_what_they_say_of_a_policy_file(self):
        environment = {'OS_VSCHED_CONFIG_FILES': self.options}
        self.run_tool(
            'oslopolicy-validator', '--namespace', 'vsched', **environment
        )
        self.run_tool(
            'oslopolicy-list-redundant', '--namespace', 'vsched', **environment
        )
        effective = self.run_tool(
            'oslopolicy-policy-generator',
            '--namespace',
            'vsched',
            **environment,
        )
        self.assertIn('"vsched:hosts:list": "role:admin"', effective)
        rules = databases.write(self, effective)
        access = databases.write(self, json.dumps(_ACCESS))
        said = self.run_tool(
            'oslopolicy-checker', '--policy', rules, '--access', access
        )
        self.assertIn('failed: vsched:hosts:list', said)
        self.assertIn('passed: vsched:versions:list', said)

    def test_the_sample(self):
        self.assertIn(
            'vsched:hosts:list',
            self.run_tool(
                'oslopolicy-sample-generator', '--namespace', 'vsched'
            ),
        )


#: devstack's functions, as far as the plugin uses them for files.
_DEVSTACK = """
set -eu
define_plugin() { :; }
enable_service() { :; }
trueorfalse() { echo "$1"; }
is_service_enabled() { true; }
sudo() { :; }
setup_logging() { :; }
iniset_rpc_backend() { iniset "$2" DEFAULT transport_url rabbit://a:b@c/; }
iniget() { :; }
iniset() { python3 -c '
import configparser, sys
path, section, option, value = sys.argv[1:]
file = configparser.RawConfigParser()
file.read(path)
if section != "DEFAULT" and not file.has_section(section):
    file.add_section(section)
file.set(section, option, value)
with open(path, "w") as stream:
    file.write(stream)
' "$1" "$2" "$3" "$4"; }
iniset_multiline() { :; }
configure_keystoneauth() {
    local option
    for option in auth_type auth_url username password user_domain_name \\
        project_name project_domain_name; do
        iniset "$1" "$3" $option password
    done
}
configure_keystone_authtoken_middleware() {
    configure_keystoneauth "$1" "$2" keystone_authtoken
}
write_uwsgi_config() { :; }
database_connection_url() { echo "mysql+pymysql://a:b@c/$1"; }
source "$VSCHED_DIR/devstack/settings"
source "$VSCHED_DIR/devstack/lib/vsched"
VSCHED_CONF=$FOLDER/api.conf
VSCHED_AGENT_CONF=$FOLDER/agent.conf
NOVA_CONF=$FOLDER/nova.conf
configure_vsched
configure_vsched_nova
"""


class TestConfigTools(Tools):
    """On the samples."""

    def test_each_sample_is_valid(self):
        generators = glob.glob(
            os.path.join(SAMPLES, '*-config-generator.conf')
        )
        self.assertGreaterEqual(len(generators), 4)
        for generator in generators:
            file = configparser.ConfigParser(strict=False)
            file.read(generator)
            self.run_tool(
                'oslo-config-validator',
                '--config-file',
                generator,
                '--input-file',
                os.path.join(ROOT, file['DEFAULT']['output_file']),
            )

    def test_each_set_option_of_a_sample_is_known(self):
        # A sample has defaults in comments, which the validator skips.
        for generator, text in (
            ('api', '[nova]\nauth_type = password\nauth_url = http://x\n'),
            ('api', '[placement]\nauth_type = admin_token\ntoken = x\n'),
            ('api', '[collector]\nverification_interval_s = 60\n'),
            ('agent', '[placement]\nauth_type = password\n'),
            ('nova', '[vsched]\nregion_name = RegionOne\n'),
        ):
            self.validate(generator, text)
        error = self.assertRaises(
            AssertionError, self.validate, 'api', '[nova]\nauth_kind = x\n'
        )
        self.assertIn('auth_kind', str(error))

    def validate(self, generator, text):
        self.run_tool(
            'oslo-config-validator',
            '--config-file',
            os.path.join(SAMPLES, generator + '-config-generator.conf'),
            '--input-file',
            databases.write(self, text),
        )

    def test_what_devstack_writes(self):
        folder = self.useFixture(fixtures.TempDir()).path
        done = subprocess.run(
            ['bash', '-c', _DEVSTACK],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            env={
                **os.environ,
                'VSCHED_DIR': ROOT,
                'FOLDER': folder,
                'DATABASE_TYPE': 'mysql',
                'DATA_DIR': folder,
                'DEST': folder,
                'ENABLE_DEBUG_LOG_LEVEL': 'False',
                'REGION_NAME': 'RegionOne',
                'STACK_USER': 'root',
                'NOVA_CPU_CONF': os.path.join(folder, 'nova-cpu.conf'),
                'NOVA_FILTERS': 'ComputeFilter',
                'VSCHED_AUTH_STRATEGY': 'keystone',
            },
        )
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        for name, sections in (
            ('api', ('database', 'bus', 'nova', 'placement')),
            ('agent', ('agent', 'bus', 'placement')),
            ('nova', ('vsched',)),
        ):
            file = configparser.RawConfigParser()
            file.read(os.path.join(folder, name + '.conf'))
            for section in sections:
                self.assertIn(section, file.sections())
            if name == 'nova':
                # The others are Nova's own.
                for section in set(file.sections()) - set(sections):
                    file.remove_section(section)
            with open(os.path.join(folder, name), 'w') as stream:
                file.write(stream)
            with open(os.path.join(folder, name)) as stream:
                self.validate(name, stream.read())

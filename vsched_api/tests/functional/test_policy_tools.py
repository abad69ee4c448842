# SPDX-License-Identifier: Apache-2.0

"""The commands of oslo.policy and oslo.config, on what we ship."""

import importlib.metadata
import json
import os
import subprocess
import sys

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


class TestConfigTools(Tools):
    """On the samples."""

    def test_each_sample_is_valid(self):
        for name in ('agent', 'api', 'standalone'):
            self.run_tool(
                'oslo-config-validator',
                '--config-file',
                os.path.join(SAMPLES, name + '-config-generator.conf'),
                '--input-file',
                os.path.join(SAMPLES, 'vsched-%s.conf.sample' % name),
            )

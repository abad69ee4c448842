# SPDX-License-Identifier: Apache-2.0

"""Each row of the table of exit codes in the documentation.

Every row is tested with ``openstack`` as a process; further cases of a row
run within the process of the test. That an audit found differences is tested
with a placement: ``test_keystone``.
"""

import json
import re
import signal
import subprocess
import time

import fixtures
from oslotest import base

from vsched_client.osc import exit_codes
from vsched_client.tests import entry_points
from vsched_client.tests import fake_nova
from vsched_client.tests.functional import api
from vsched_client.tests import scenario
from vsched_client.tests import shell

GUIDE = entry_points.ROOT / 'doc' / 'source' / 'user' / 'cli.rst'
HOST = 'node1'
UNKNOWN = '99999999-9999-4999-8999-999999999999'
#: Of what Ctrl-C ends; the shell's own, and no code of the plugin.
INTERRUPTED = 128 + signal.SIGINT
#: Only a hang takes longer.
_PATIENCE_S = 180


def documented():
    """Return the codes of the table, in its order."""
    text = GUIDE.read_text(encoding='utf-8')
    section = text[text.index('\nExit codes\n==') :]
    table = section[: section.index('\nFlavors\n==')]
    return [int(one) for one in re.findall(r'^   \* - ([0-9]+)$', table, re.M)]


class TestExitCodes(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        nova = fake_nova.FakeNova(
            **{scenario.FLAVOR: dict(scenario.FLAVOR_SPECS)}
        )
        self.nova = nova
        self.url = self.useFixture(api.Api(compute=nova)).url
        self.environment = entry_points.install(
            self.useFixture(fixtures.TempDir()).path
        )

    def start(self, *words, url=None):
        """Start ``openstack`` as a process."""
        process = subprocess.Popen(
            [
                # What shells run in the background ignores SIGINT.
                *('env', '--default-signal=INT'),
                *entry_points.command_line(
                    *('--os-auth-type', 'none'),
                    *('--os-endpoint', url or self.url),
                    *words,
                ),
            ],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        process.kill()
        process.communicate()

    def process(self, code, *words, **more):
        """Run a process; return what it wrote, and its messages."""
        process = self.start(*words, **more)
        out, err = process.communicate(timeout=_PATIENCE_S)
        self.assertEqual(code, process.returncode, (words, out, err))
        return out, err

    def shell(self, code, *words, **more):
        found = shell.run(*words, url=self.url, **more)
        self.assertEqual(code, found.code, (words, found))
        return found

    def set(self, code, *words, run=None):
        return (run or self.shell)(
            code, 'cpu', 'reservation', 'set', api.RESERVED, *words
        )

    def reservation(self):
        return self.shell(
            *(0, 'cpu', 'reservation', 'show', api.RESERVED, '-f', 'json')
        ).json

    def test_each_row_is_tested(self):
        rows = documented()
        self.assertEqual(rows, [*exit_codes.ExitCode, INTERRUPTED])
        for row in rows:
            self.assertTrue(hasattr(self, 'test_row_%d' % row), row)

    def test_row_0(self):
        out, err = self.process(0, 'cpu', 'host', 'list', '-f', 'json')
        self.assertEqual(3, len(json.loads(out)))
        self.assertEqual('', err)
        words = ('--share', '50%', '-f', 'json')
        self.assertEqual(
            'applied', self.set(0, *words, '--wait').json['state']
        )
        # Without --wait it is stored, and no more.
        silent = ('--runtime', '%dus' % api.SILENT_US, '-f', 'json')
        self.assertEqual('pending', self.set(0, *silent).json['state'])

    def test_row_1(self):
        _, err = self.process(1, 'cpu', 'reservation', 'show', UNKNOWN)
        self.assertIn('vsched.instance.not_found', err)
        out, err = self.process(
            1, 'cpu', 'host', 'list', url='http://127.0.0.1:1'
        )
        self.assertEqual('', out)
        self.assertIn('GET /v1/hosts', err)
        # A refusal that is no host's.
        found = self.set(1, '--runtime', '30ms', '--period', '20ms')
        self.assertIn('vsched.reservation.invalid', found.err)
        # One that an operator has to decide about.
        found = self.shell(1, 'cpu', 'host', 'audit', HOST)
        self.assertIn('HTTP 501', found.err)

    def test_row_2(self):
        _, err = self.process(2, 'cpu', 'host', 'list', '--sort', 'cpus')
        self.assertIn('admitted_mcpu', err)
        for words in (
            ('reservation', 'show', 'no-uuid'),
            ('reservation', 'create', api.PLAIN),
            ('reservation', 'set', api.PLAIN),
            ('usage', 'show', '--of', 'hosts', api.PLAIN),
            ('event', 'list', '--follow', '--end', '2027-01-15'),
            ('flavor', 'sync'),
            ('profile', 'create', HOST, '--kind', 'overhead', '--seconds=5'),
        ):
            self.assertEqual('', self.shell(2, 'cpu', *words).out)

    def test_row_3(self):
        out, err = self.set(
            *(3, '--share', '100%', '--wait', '-f', 'json'), run=self.process
        )
        self.assertEqual('refused', json.loads(out)['state'])
        self.assertIn('vsched.reservation.does_not_fit', err)
        found = self.set(
            *(3, '--runtime', '%dus' % api.WEAKER_US, '--wait', '-f', 'json')
        )
        self.assertEqual(
            ('degraded', 'cfs'),
            (found.json['state'], found.json['enforced']['backend']),
        )
        # What the API knows that the host would not do.
        found = self.shell(
            *(3, 'cpu', 'balloon', 'set', api.PLAIN, '--vcpus', '9')
        )
        self.assertIn('vsched.balloon.out_of_bounds', found.err)
        job = self.shell(
            0, 'cpu', 'profile', 'create', HOST, '-f', 'json'
        ).json['uuid']
        self.shell(0, 'cpu', 'job', 'cancel', job, '--wait')
        found = self.shell(3, 'cpu', 'job', 'show', job, '--wait')
        self.assertIn('the job is cancelled', found.err)
        found = self.shell(
            *(3, 'cpu', 'evaluation', 'create', '--demand', '1'),
            *('--instances', '99'),
        )
        self.assertIn('of 99 placed', found.err)

    def test_row_4(self):
        _, err = self.set(
            *(4, '--runtime', '%dus' % api.SILENT_US),
            *('--wait', '--timeout', '100ms'),
            run=self.process,
        )
        self.assertIn('the agent has not answered', err)
        # The change stays as ordered.
        found = self.reservation()
        self.assertEqual(
            ('pending', api.SILENT_US), (found['state'], found['runtime_us'])
        )
        found = self.shell(
            *(4, 'cpu', 'profile', 'create', HOST),
            *('--wait', '--timeout', '100ms'),
        )
        self.assertIn('has not come to its end', found.err)

    def test_row_5(self):
        generation = self.set(
            0, '--share', '50%', '--wait', '-f', 'json'
        ).json['generation']
        waiting = self.start(
            *('cpu', 'reservation', 'set', api.RESERVED),
            *('--runtime', '%dus' % api.SILENT_US, '--wait'),
            *('--timeout', '%ds' % _PATIENCE_S),
        )
        give_up = time.monotonic() + _PATIENCE_S
        while self.reservation()['runtime_us'] != api.SILENT_US:
            self.assertLess(time.monotonic(), give_up)
            time.sleep(0.1)
        # It is based on what was replaced: nothing is changed.
        found = self.set(5, '--share', '40%', '--generation', str(generation))
        self.assertIn('generation', found.err)
        self.assertEqual(api.SILENT_US, self.reservation()['runtime_us'])
        self.set(0, '--share', '30%', '--wait')
        _, err = waiting.communicate(timeout=_PATIENCE_S)
        self.assertEqual(5, waiting.returncode, err)
        self.assertIn('another request changed the reservation', err)

    def test_row_6(self):
        _, err = self.process(6, 'cpu', 'flavor', 'show', scenario.FLAVOR)
        self.assertIn('does not claim what it reserves', err)
        words = ('cpu', 'flavor', 'sync', '--all')
        self.shell(6, *words, '--dry-run', compute=self.nova)
        self.shell(0, *words, compute=self.nova)
        # Nothing differs any more.
        self.shell(0, *words, '--dry-run', compute=self.nova)
        self.shell(
            *(0, 'cpu', 'flavor', 'show', scenario.FLAVOR), compute=self.nova
        )

    def test_row_130(self):
        process = self.start('cpu', 'event', 'list', '--follow', '-f', 'json')
        # It follows from now on, until it is interrupted.
        self.assertIn('severity', json.loads(process.stdout.readline()))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=_PATIENCE_S)
        self.assertEqual(130, process.returncode, err)
        self.assertNotIn('Traceback', err)

# SPDX-License-Identifier: Apache-2.0

"""Services as operators run them: processes with options in files."""

import os
import signal
import subprocess

import fixtures

from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_lib.tests import bus_keys
from vsched_lib.tests import rabbitmq

#: Only a hang takes longer.
PATIENCE_S = 120
ROOT = os.path.abspath(
    os.path.join(os.path.dirname(__file__), '..', '..', '..')
)


class Process(base.TestCase):
    """A test that starts processes."""

    kind = databases.PostgreSQL

    def setUp(self):
        super().setUp()
        self.bus = rabbitmq.make_vhost(self)
        self.master = bus_keys.write(
            self.useFixture(fixtures.TempDir()).path,
            'master.key',
            bus_keys.MASTER,
        )
        self.options = self.write_options(self.bus)

    def write_options(self, transport_url):
        """Write the options of the services to a file, and return its path."""
        return databases.write(
            self,
            '[DEFAULT]\ntransport_url = %s\n'
            '[api]\nauth_strategy = noauth\n'
            '[bus]\nmaster_key_file = %s\n'
            '[database]\nconnection = %s\n'
            % (transport_url, self.master, self.conf.database.connection),
        )

    def start(self, *command, **more):
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **more,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def read_until(self, process, text):
        """What it says, up to and with a line that has the text."""
        lines = []
        for line in process.stdout:
            lines.append(line)
            if text in line:
                return ''.join(lines)
        self.fail('it ended: ' + ''.join(lines))

    def end(self, process, number=signal.SIGTERM):
        """Ask it to end; what it still says."""
        process.send_signal(number)
        said = process.communicate(timeout=PATIENCE_S)[0]
        self.assertEqual(0, process.returncode, said)
        return said

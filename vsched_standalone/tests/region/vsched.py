# SPDX-License-Identifier: Apache-2.0

"""Our own services beside a real Nova."""

import os
import subprocess
import sys
import typing as ty

import fixtures

from vsched_lib.tests import openstack_services
from vsched_standalone.tests import commands
from vsched_standalone.tests import private_services
from vsched_standalone.tests.region import daemon
from vsched_standalone.tests.region import nova

_HERE = 'vsched_standalone.tests.region.'


class Vsched(fixtures.Fixture):
    """API and collector, and the configuration that they share.

    :param transport_url: the broker.
    :param connection: the database.
    :param auth: options of whoever asks keystone, placement and Nova.
    """

    def __init__(
        self, transport_url: str, connection: str, auth: ty.Mapping[str, str]
    ) -> None:
        self._transport_url = transport_url
        self._connection = connection
        self._auth = dict(auth)
        self.port = private_services.free_port()

    def _setUp(self) -> None:
        self.collector = self.useFixture(
            daemon.Daemon(
                'vsched-collector',
                lambda _: commands.python(commands.COLLECTOR, self.file),
            )
        )
        self.file = openstack_services.write(
            os.path.join(self.collector.folder, 'vsched.conf'),
            {
                'DEFAULT': {'transport_url': self._transport_url},
                'bus': {
                    'master_key_file': os.path.join(
                        self.collector.folder, 'master.key'
                    )
                },
                'database': {'connection': self._connection},
                'api': {'auth_strategy': 'keystone'},
                'keystone_authtoken': {
                    'www_authenticate_uri': self._auth['auth_url'],
                    'interface': 'public',
                    **self._auth,
                },
                'placement': self._auth,
                'nova': self._auth,
            },
        )
        self.api = self.useFixture(
            daemon.Daemon(
                'vsched-api',
                lambda _: commands.api(self.port),
                {'OS_VSCHED_CONFIG_FILES': self.file},
            )
        )

    @property
    def endpoint(self) -> str:
        """The API's URL."""
        return 'http://127.0.0.1:%d' % self.port

    def prepare(self) -> None:
        """The tables."""
        for words in (
            ('db', 'sync'),
            (
                'master-key',
                'create',
                os.path.join(self.collector.folder, 'master.key'),
            ),
        ):
            done = self.manage(*words)
            if done.returncode:
                raise RuntimeError(done.stderr)

    def manage(self, *words: str) -> subprocess.CompletedProcess[str]:
        """``vsched-manage`` with these words."""
        return subprocess.run(
            commands.python(commands.MANAGE, self.file, *words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def simulated_agent(
        self, host: str, compute: daemon.Daemon, capacity_mcpu: int
    ) -> daemon.Daemon:
        """The agent of a simulated compute; nothing is started.

        :param capacity_mcpu: what it may promise.
        """
        return daemon.Daemon(
            'agent of ' + host,
            lambda folder: [
                sys.executable,
                '-m',
                _HERE + 'simulated_agent',
                self._agent(folder, host),
                nova.domains_of(compute),
                str(capacity_mcpu),
            ],
        )

    def agent(self, host: str, uri: str, run_dir: str) -> daemon.Daemon:
        """The agent of a compute with libvirt; nothing is started.

        :param uri: of its libvirtd.
        :param run_dir: where that has the pid files of its domains.
        """
        return daemon.Daemon(
            'agent of ' + host,
            lambda folder: commands.python(
                commands.AGENT,
                self._agent(folder, host, uri=uri, run_dir=run_dir),
                'run',
            ),
        )

    def _key(self, folder: str, host: str) -> str:
        path = os.path.join(folder, 'host.key')
        if not os.path.exists(path):
            done = self.manage('host-key', 'issue', host, '--output', path)
            if done.returncode:
                raise RuntimeError(done.stderr)
        return path

    def _agent(self, folder: str, host: str, **hypervisor: str) -> str:
        return openstack_services.write(
            os.path.join(folder, 'vsched.conf'),
            {
                'DEFAULT': {'transport_url': self._transport_url},
                'bus': {'key_file': self._key(folder, host)},
                'agent': {
                    'host': host,
                    'report_interval': 0.5,
                    'interval': 0.5,
                    'restore_on_stop': True,
                    'state_path': os.path.join(folder, 'state'),
                },
                'hypervisor': hypervisor,
                # What is not there yet is waited for by looking again.
                'placement': {'sync_interval': 1, **self._auth},
            },
        )

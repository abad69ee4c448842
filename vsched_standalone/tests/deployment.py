# SPDX-License-Identifier: Apache-2.0

"""The services as operators run them: processes, a broker, a database."""

import contextlib
import os
import signal
import subprocess
import time
import typing as ty

import fixtures
import requests

from vsched_standalone.tests import commands
from vsched_standalone.tests import private_services
from vsched_standalone.tests import releases

#: Only a hang takes longer, in seconds.
_START_S = 240
_STOP_S = 120
_REQUEST_S = 120


class Deployment(fixtures.Fixture):
    """Agent, collector and API, each a process of its own.

    :param transport_url: the broker.
    :param connection: the database; its schema is made here.
    :param host: the agent's name.
    :param options: added to the configuration, by section.
    :param parts: the services to start.
    :param release: whose programs make the database and run.
    :ivar release: whose programs are started next; this tree's if None.
    """

    def __init__(
        self,
        transport_url: str,
        connection: str,
        host: str = 'node-1',
        options: ty.Mapping[str, ty.Mapping[str, str]] | None = None,
        parts: ty.Sequence[str] = ('collector', 'api', 'agent'),
        release: releases.Release | None = None,
    ) -> None:
        self._transport_url = transport_url
        self._connection = connection
        self._options = options or {}
        self._parts = parts
        self.host = host
        self.release = release

    def _setUp(self) -> None:
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.port = private_services.free_port()
        self.url = 'http://127.0.0.1:%d' % self.port
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._config = os.path.join(self.folder, 'vsched.conf')
        with open(self._config, 'w', encoding='utf-8') as file:
            file.write(
                '\n'.join(
                    (
                        '[DEFAULT]',
                        'transport_url = ' + self._transport_url,
                        '[database]',
                        'connection = ' + self._connection,
                        '[api]',
                        'auth_strategy = noauth',
                        '[bus]',
                        'master_key_file = ' + self.master_key_file,
                        'key_file = ' + self.host_key_file,
                        '[agent]',
                        'host = ' + self.host,
                        'state_path = ' + os.path.join(self.folder, 'state'),
                        'report_interval = 1',
                        '',
                    )
                )
            )
            for section, values in self._options.items():
                file.write('[%s]\n' % section)
                file.writelines('%s = %s\n' % one for one in values.items())
        for words in (
            ('db', 'sync'),
            ('master-key', 'create', self.master_key_file),
            ('host-key', 'issue', self.host, '--output', self.host_key_file),
        ):
            self.manage(*words)
        for name in self._parts:
            self.addCleanup(self.stop, name)
            self.start(name)
        if 'agent' in self._parts:
            self.addCleanup(self.restore)

    def start(self, name: str) -> None:
        """Start one service; one that is called is ready on return.

        :param name: agent or api; any other is a collector's.
        """
        with open(self.log(name), 'ab') as log:
            begins_at = log.tell()
            self._processes[name] = subprocess.Popen(
                self._command(name),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self._cwd,
                env=os.environ | {'OS_VSCHED_CONFIG_FILES': self._config},
            )
        if name == 'api':
            self._await(lambda: private_services.answers(self.port), name)
        elif name != 'agent':
            # The broker drops calls to a collector that never listened.
            self._await(lambda: self._takes_reports(name, begins_at), name)

    def _takes_reports(self, name: str, begins_at: int) -> bool:
        with open(self.log(name), 'rb') as file:
            file.seek(begins_at)
            return b'takes reports' in file.read()

    def _command(self, name: str) -> list[str]:
        if name == 'api':
            return commands.api(
                self.port, self.release.home if self.release else None
            )
        if name == 'agent':
            return self._python(commands.AGENT, 'run')
        return self._python(commands.COLLECTOR)

    def _python(self, module: str, *words: str) -> list[str]:
        return commands.python(
            module,
            self._config,
            *words,
            interpreter=(self.release or releases.Present).python,
        )

    @property
    def _cwd(self) -> str | None:
        # Python imports from there first.
        return self.release.path if self.release else None

    def manage(self, *words: str) -> None:
        """Run ``vsched-manage``."""
        self._run(self._python(commands.MANAGE, *words))

    def stop(self, name: str) -> None:
        """Ask one service to stop, and wait until it has."""
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise RuntimeError(
                '%s did not stop: %s' % (name, self.said(name))
            ) from None

    def kill(self, name: str) -> None:
        """End one service and its children without a word (SIGKILL)."""
        process = self._processes.pop(name)
        # It may have ended by itself.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    @property
    def connection(self) -> str:
        """The database."""
        return self._connection

    @property
    def master_key_file(self) -> str:
        """What the keys of hosts are made of."""
        return os.path.join(self.folder, 'master.key')

    @property
    def host_key_file(self) -> str:
        """The key of the host."""
        return os.path.join(self.folder, 'host.key')

    def pid(self, name: str) -> int:
        """The process of a service that runs."""
        return self._processes[name].pid

    def alive(self, name: str) -> bool:
        """Whether the process of a service runs."""
        process = self._processes.get(name)
        return process is not None and process.poll() is None

    def restore(self) -> None:
        """What an operator runs to undo vsched on a host."""
        if 'agent' in self._processes:
            self.stop('agent')
        self._run(self._python(commands.AGENT, 'restore'))

    def log(self, name: str) -> str:
        """Where a service writes."""
        return os.path.join(self.folder, name + '.log')

    def said(self, name: str) -> str:
        """What a service has written, the end of it."""
        with open(self.log(name), encoding='utf-8', errors='replace') as file:
            return file.read()[-4000:]

    def request(
        self, method: str, path: str, **arguments: ty.Any
    ) -> requests.Response:
        """One request to the API."""
        return requests.request(
            method, self.url + path, timeout=_REQUEST_S, **arguments
        )

    def get(self, path: str, **query: ty.Any) -> ty.Any:
        """The body of a GET that must succeed."""
        reply = self.request('GET', path, params=query)
        reply.raise_for_status()
        return reply.json()

    def reservation(self, uuid: str) -> dict[str, ty.Any]:
        """One reservation, empty while there is none."""
        reply = self.request('GET', '/v1/reservations/' + uuid)
        if reply.status_code == 404:
            return {}
        reply.raise_for_status()
        body: dict[str, ty.Any] = reply.json()
        return dict(body.get('reservation', body))

    def await_state(
        self, uuid: str, state: str, **enforced: ty.Any
    ) -> dict[str, ty.Any]:
        """Wait until a reservation is in a state and held as said."""

        def there() -> bool:
            seen = self.reservation(uuid)
            held = seen.get('enforced') or {}
            return seen.get('state') == state and all(
                held.get(key) == value for key, value in enforced.items()
            )

        self._await(there, 'agent')
        return self.reservation(uuid)

    def usage(self, uuid: str) -> list[dict[str, ty.Any]]:
        """Every usage sample of an instance, oldest first."""
        found: list[dict[str, ty.Any]] = []
        query: dict[str, ty.Any] = {'instance_uuid': uuid, 'limit': 1000}
        while True:
            page = self.get('/v1/usage', **query)
            found += page['usage']
            following = [
                link['href']
                for link in page.get('links', ())
                if link['rel'] == 'next'
            ]
            if not following or not page['usage']:
                return sorted(found, key=lambda one: one['at'])
            query['marker'] = following[0].split('marker=')[1].split('&')[0]

    def _await(self, there: ty.Callable[[], bool], name: str) -> None:
        give_up = time.monotonic() + _START_S
        while not there():
            process = self._processes.get(name)
            if time.monotonic() > give_up or (
                process is not None and process.poll() is not None
            ):
                raise RuntimeError('%s: %s' % (name, self.said(name)))
            time.sleep(0.2)

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_START_S,
            cwd=self._cwd,
        )
        if done.returncode:
            raise RuntimeError(
                '%s: %s%s'
                % (' '.join(command), done.stdout[-2000:], done.stderr[-2000:])
            )

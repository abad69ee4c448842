# SPDX-License-Identifier: Apache-2.0

"""Services of a test's own, to be stopped and started.

The services that everyone else uses stay untouched. They run as the users
their packages made for them, in a folder that is removed afterwards, on
loopback ports that nobody else is given.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import typing as ty

import fixtures
import requests

from vsched_lib.tests import ports
from vsched_lib.tests import requirements
from vsched_lib.tests import run_mark

_RABBITMQ = '/usr/lib/rabbitmq/bin/rabbitmq-server'
#: Only a hang takes longer.
_START_S = 240


def require_installed(test: ty.Any, **paths: str) -> None:
    """Skip, or fail, a test where a part is not installed.

    :param paths: where each part would be, by its name.
    """
    for part, path in paths.items():
        if not os.path.exists(path):
            requirements.require(test, part, 'it is not installed')


def free_port() -> int:
    """A loopback TCP port that nobody else listens on."""
    return ports.reserve()


def answers(port: int) -> bool:
    """Whether somebody accepts connections there."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(('127.0.0.1', port)) == 0


class Service(fixtures.Fixture):
    """A process that listens on a port of its own.

    :ivar port: where; one that is free, unless somebody chose it.
    """

    user: str
    port = 0
    stop_signal = signal.SIGTERM

    def _setUp(self) -> None:
        # Not below a test's own temporary folder, which only root enters.
        self.folder = tempfile.mkdtemp(prefix='vsched-test-', dir='/var/tmp')
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        shutil.chown(self.folder, self.user, self.user)
        self.port = self.port or free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.prepare()
        self.addCleanup(self.stop)
        self.start()

    def prepare(self) -> None:
        """Once, before the first start."""

    def command(self) -> tuple[list[str], dict[str, str]]:
        """What to run, and its environment."""
        raise NotImplementedError

    def start(self) -> None:
        """Start it and wait until it answers."""
        command, environment = self.command()
        log = open(os.path.join(self.folder, 'log'), 'ab')
        with log:
            self._process = subprocess.Popen(
                command,
                # tools/test.sh ends what has its mark when a run is cut.
                env=environment | run_mark.variables(),
                cwd=self.folder,
                user=self.user,
                group=self.user,
                extra_groups=[],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        give_up = time.monotonic() + _START_S
        while not self.ready():
            if self._process.poll() is not None or time.monotonic() > give_up:
                with open(
                    log.name, encoding='utf-8', errors='replace'
                ) as said:
                    raise RuntimeError(
                        '%s did not start: %s'
                        % (command[0], said.read()[-2000:])
                    )
            time.sleep(0.1)

    def ready(self) -> bool:
        """Return whether it answers, once it was started."""
        return answers(self.port)

    @property
    def pid(self) -> int:
        """Its process, which runs."""
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it and its children with SIGKILL."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def stop(self) -> None:
        """Stop it; the port is free afterwards."""
        if self._process is None:
            return
        self._process.send_signal(self.stop_signal)
        try:
            self._process.wait(_START_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


class Rabbit(Service):
    """A RabbitMQ node of its own. Needs epmd, as any other node does."""

    user = 'rabbitmq'

    def prepare(self) -> None:
        """Its configuration, on loopback only."""
        with open(
            os.path.join(self.folder, 'rabbitmq.conf'), 'w', encoding='ascii'
        ) as file:
            file.write(
                'listeners.tcp.1 = 127.0.0.1:%d\n'
                'disk_free_limit.absolute = 50MB\n' % self.port
            )
        with open(
            os.path.join(self.folder, 'plugins'), 'w', encoding='ascii'
        ) as file:
            file.write('[].\n')

    def command(self) -> tuple[list[str], dict[str, str]]:
        """The node in the foreground."""
        return [_RABBITMQ], {
            'PATH': '/usr/sbin:/usr/bin:/sbin:/bin',
            'HOME': '/var/lib/rabbitmq',
            # Makes the script become the node, so that the pid is its.
            'RUNNING_UNDER_SYSTEMD': '1',
            'RABBITMQ_CONF_ENV_FILE': '/dev/null',
            'RABBITMQ_NODENAME': 'vsched-%d@localhost' % self.port,
            'RABBITMQ_CONFIG_FILE': os.path.join(self.folder, 'rabbitmq.conf'),
            'RABBITMQ_ENABLED_PLUGINS_FILE': os.path.join(
                self.folder, 'plugins'
            ),
            'RABBITMQ_DIST_PORT': str(free_port()),
            'RABBITMQ_MNESIA_BASE': os.path.join(self.folder, 'mnesia'),
            'RABBITMQ_LOG_BASE': os.path.join(self.folder, 'logs'),
            'RABBITMQ_LOGS': '-',
        }

    @property
    def transport_url(self) -> str:
        """For ``transport_url`` of oslo.messaging."""
        return 'rabbit://guest:guest@127.0.0.1:%d/' % self.port


class Postgres(Service):
    """A PostgreSQL server of its own, with one empty database."""

    user = 'postgres'
    stop_signal = signal.SIGINT

    def prepare(self) -> None:
        """Make its data folder."""
        versions = sorted(os.listdir('/usr/lib/postgresql'), key=float)
        self._bin = os.path.join('/usr/lib/postgresql', versions[-1], 'bin')
        self._data = os.path.join(self.folder, 'data')
        subprocess.run(
            [
                os.path.join(self._bin, 'initdb'),
                '-D',
                self._data,
                '-A',
                'trust',
                '-U',
                'vsched',
                '--no-sync',
            ],
            check=True,
            user=self.user,
            group=self.user,
            extra_groups=[],
            cwd=self.folder,
            env={'PATH': '/usr/bin:/bin', 'LC_ALL': 'C'},
            stdout=subprocess.DEVNULL,
        )

    def command(self) -> tuple[list[str], dict[str, str]]:
        """The server in the foreground."""
        return [
            os.path.join(self._bin, 'postgres'),
            '-D',
            self._data,
            '-p',
            str(self.port),
            '-k',
            self.folder,
            '-c',
            'listen_addresses=127.0.0.1',
        ], {'PATH': '/usr/bin:/bin', 'LC_ALL': 'C'}

    def ready(self) -> bool:
        """Return whether it takes connections: it listens before it does."""
        return (
            super().ready()
            and subprocess.run(
                [
                    os.path.join(self._bin, 'pg_isready'),
                    '--host=127.0.0.1',
                    '--port=%d' % self.port,
                ],
                check=False,
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ).returncode
            == 0
        )

    @property
    def connection(self) -> str:
        """For ``[database] connection``."""
        return 'postgresql+psycopg2://vsched@127.0.0.1:%d/postgres' % self.port


class MariaDB(Service):
    """A MariaDB server of its own, with one empty database."""

    user = 'mysql'

    def prepare(self) -> None:
        """Make its data folder."""
        self._data = os.path.join(self.folder, 'data')
        subprocess.run(
            [
                'mariadb-install-db',
                '--no-defaults',
                '--datadir=' + self._data,
                '--auth-root-authentication-method=normal',
                '--skip-test-db',
            ],
            check=True,
            user=self.user,
            group=self.user,
            extra_groups=[],
            cwd=self.folder,
            env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # Run by the server each time that it starts.
        self._init = os.path.join(self.folder, 'init.sql')
        with open(self._init, 'w', encoding='ascii') as file:
            file.write('CREATE DATABASE IF NOT EXISTS vsched;\n')

    def command(self) -> tuple[list[str], dict[str, str]]:
        """The server in the foreground, as durable as it comes."""
        return [
            'mariadbd',
            '--no-defaults',
            '--datadir=' + self._data,
            '--bind-address=127.0.0.1',
            '--port=%d' % self.port,
            '--socket=' + os.path.join(self.folder, 'socket'),
            '--pid-file=' + os.path.join(self.folder, 'pid'),
            '--skip-name-resolve',
            '--init-file=' + self._init,
        ], {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL': 'C'}

    @property
    def connection(self) -> str:
        """For ``[database] connection``."""
        return 'mysql+pymysql://root@127.0.0.1:%d/vsched' % self.port


class Nginx(Service):
    """An nginx with one site of its own."""

    user = 'www-data'

    @staticmethod
    def program() -> str | None:
        """Where nginx is installed, if it is."""
        return shutil.which(
            'nginx',
            path=os.pathsep.join((os.environ.get('PATH', ''), '/usr/sbin')),
        )

    def site(self) -> str:
        """What it serves: a file of ``conf.d``."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Write what includes the site, and keep all files in the folder."""
        self._conf = os.path.join(self.folder, 'nginx.conf')
        kinds = ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi')
        with open(self._conf, 'w', encoding='ascii') as file:
            file.write(
                'daemon off;\npid %(in)s/pid;\nworker_processes 1;\n'
                'events {}\nhttp {\naccess_log off;\n%(paths)s'
                'include %(in)s/site.conf;\n}\n'
                % {
                    'in': self.folder,
                    'paths': ''.join(
                        '%s_temp_path %s/%s;\n' % (one, self.folder, one)
                        for one in kinds
                    ),
                }
            )

    def command(self) -> tuple[list[str], dict[str, str]]:
        """The server in the foreground."""
        program = self.program()
        assert program is not None
        with open(
            os.path.join(self.folder, 'site.conf'), 'w', encoding='ascii'
        ) as file:
            file.write(self.site())
        return [
            program,
            '-p',
            self.folder,
            '-c',
            self._conf,
            '-e',
            'stderr',
        ], {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'}


class Prometheus(Service):
    """A Prometheus of its own.

    :param files: by name, the files of its configuration, in which ``FOLDER``
        stands for their folder; ``prometheus.yaml`` is one of them.
    """

    user = 'prometheus'

    def __init__(self, files: ty.Mapping[str, str]) -> None:
        self._files = files

    @staticmethod
    def program(name: str = 'prometheus') -> str | None:
        """Where it is installed, if it is.

        :param name: prometheus or promtool.
        """
        return shutil.which(name)

    def prepare(self) -> None:
        """Write its configuration."""
        for name, text in self._files.items():
            path = os.path.join(self.folder, name)
            with open(path, 'w', encoding='utf-8') as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(text.replace('FOLDER', self.folder))
            shutil.chown(path, self.user, self.user)

    def command(self) -> tuple[list[str], dict[str, str]]:
        """The server in the foreground."""
        program = self.program()
        assert program is not None
        return [
            program,
            '--config.file=' + os.path.join(self.folder, 'prometheus.yaml'),
            '--storage.tsdb.path=' + os.path.join(self.folder, 'data'),
            '--web.listen-address=127.0.0.1:%d' % self.port,
        ], {'PATH': '/usr/bin:/bin'}

    def ready(self) -> bool:
        """Return whether it answers queries: it listens before it can."""
        return (
            super().ready()
            and requests.get(
                'http://127.0.0.1:%d/-/ready' % self.port, timeout=_START_S
            ).ok
        )

    def ask(self, path: str, **query: str) -> ty.Any:
        """Return the data of an answer of its API.

        :raises AssertionError: when it refuses, such as an expression that it
            cannot parse.
        """
        answer = requests.get(
            'http://127.0.0.1:%d/api/v1/%s' % (self.port, path),
            params=query,
            timeout=_START_S,
        )
        found = answer.json()
        if found['status'] != 'success':
            raise AssertionError('%s: %s' % (query, found))
        return found['data']

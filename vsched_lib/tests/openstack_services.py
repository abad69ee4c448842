# SPDX-License-Identifier: Apache-2.0

"""Real placement and keystone, as processes of their own.

Each has a folder that goes with the test, a SQLite database in it unless
another one is named, and a loopback port that nobody else is given.
"""

import atexit
import importlib.metadata
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import types
import typing as ty
import unittest
import urllib.parse
import uuid as uuids

import fixtures
from keystoneauth1 import adapter
from keystoneauth1.identity import v3
from keystoneauth1 import session as sessions
from keystoneauth1 import token_endpoint
import pymysql

from vsched_lib.openstack import placement
from vsched_lib.tests import ports
from vsched_lib.tests import requirements
from vsched_lib.tests import run_mark

#: Only a hang takes longer.
_START_S = 240
#: Where the project is: what runs in a service may be a part of it.
_ROOT = os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
)

#: Options by name, by section.
Sections = ty.Mapping[str, ty.Mapping[str, ty.Any]]


#: How an administrator reaches MariaDB.
MARIADB = os.environ.get(
    'VSCHED_TEST_MARIADB_URL', 'mysql+pymysql://root@127.0.0.1:3306/'
)


def mariadb(test: unittest.TestCase) -> str:
    """The URL of a new, empty database, which goes with the test."""
    server = urllib.parse.urlsplit(MARIADB)
    name = 'vsched_test_' + uuids.uuid4().hex

    def execute(statement: str) -> None:
        connection = pymysql.connect(
            host=server.hostname,
            port=server.port or 3306,
            user=server.username,
            password=server.password or '',
            connect_timeout=60,
        )
        with connection, connection.cursor() as cursor:
            cursor.execute(statement)

    try:
        execute('CREATE DATABASE ' + name)
    except pymysql.OperationalError as problem:
        requirements.require(test, 'mariadb', str(problem))
    test.addCleanup(execute, 'DROP DATABASE ' + name)
    return MARIADB + name


def write_options(test: unittest.TestCase, sections: Sections) -> str:
    """The path of a configuration file, which goes with the test."""
    folder = tempfile.mkdtemp(prefix='vsched-test-')
    test.addCleanup(shutil.rmtree, folder)
    return write(os.path.join(folder, 'vsched.conf'), sections)


def write(path: str, sections: Sections) -> str:
    """Write a configuration file; its path."""
    with open(path, 'w', encoding='utf-8') as file:
        for section, options in sections.items():
            file.write('[%s]\n' % section)
            for name, value in options.items():
                # A list is an option that is given several times.
                file.writelines(
                    '%s = %s\n' % (name, one)
                    for one in (value if isinstance(value, list) else [value])
                )
    return path


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(('127.0.0.1', port)) == 0


# An application may read the command line, which must be empty by then.
_SERVE = """
import importlib, sys, waitress
port, application = sys.argv[1:]
del sys.argv[1:]
module, name = application.split(':')
waitress.serve(getattr(importlib.import_module(module), name),
               host='127.0.0.1', port=int(port), threads=16)
"""


class Service(fixtures.Fixture):
    """A WSGI application behind waitress.

    :param test: fails or is skipped when the service isn't installed.
    :ivar at_once: prepared and started by ``setUp``; else by whoever made
        it, beside others.
    """

    at_once = True
    distribution: ty.ClassVar[str]
    application: ty.ClassVar[str]
    variable: ty.ClassVar[str]

    def __init__(self, test: unittest.TestCase) -> None:
        super().__init__()
        try:
            importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            requirements.require(
                test, 'nova', '%s is not installed' % self.distribution
            )

    def _setUp(self) -> None:
        # Not below a test's own folder for temporary files: it may outlive
        # the test.
        self.folder = tempfile.mkdtemp(prefix='vsched-test-', dir='/var/tmp')
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.port = ports.reserve()
        self._process: subprocess.Popen[bytes] | None = None
        self.addCleanup(self.stop)
        if self.at_once:
            self.prepare()
            self.start()

    @property
    def endpoint(self) -> str:
        """Its URL."""
        return 'http://127.0.0.1:%d' % self.port

    def prepare(self) -> None:
        """Once, before the first start."""

    def write(self, name: str, sections: Sections) -> str:
        """A configuration file in the folder; its path."""
        return write(os.path.join(self.folder, name), sections)

    @property
    def _environment(self) -> dict[str, str]:
        return {
            'PATH': os.environ['PATH'],
            'HOME': self.folder,
            'PYTHONWARNINGS': 'ignore',
            'PYTHONPATH': _ROOT,
            self.variable: self.folder,
            **run_mark.variables(),
        }

    def run(self, *command: str) -> None:
        """One of its own commands, from the same environment."""
        path = os.path.join(os.path.dirname(sys.executable), command[0])
        done = subprocess.run(
            [path, *command[1:]],
            env=self._environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(
                '%s: %s' % (' '.join(command), done.stdout.decode()[-2000:])
            )

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it; it does not answer yet."""
        with open(os.path.join(self.folder, 'log'), 'ab') as file:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    '-c',
                    _SERVE,
                    str(self.port),
                    self.application,
                ],
                env=self._environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    def wait(self) -> None:
        """Wait until it answers.

        :raises RuntimeError: when it has ended, or takes too long.
        """
        give_up = time.monotonic() + _START_S
        while not _answers(self.port):
            if (
                self._process is None
                or self._process.poll() is not None
                or time.monotonic() > give_up
            ):
                raise RuntimeError(
                    '%s did not start: %s' % (self.application, self.said())
                )
            time.sleep(0.05)

    def said(self) -> str:
        """What it has written, the end of it."""
        with open(
            os.path.join(self.folder, 'log'),
            encoding='utf-8',
            errors='replace',
        ) as file:
            return file.read()[-2000:]

    def stop(self) -> None:
        """Stop it; nobody listens on the port afterwards."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


class Placement(Service):
    """A placement service; without keystone unless one is named.

    :param connection: of its database; SQLite in its folder when None.
    :param options: further ones, by section.
    :param keystone: who says who is who.
    """

    distribution = 'openstack-placement'
    application = 'placement.wsgi.api:application'
    variable = 'OS_PLACEMENT_CONFIG_DIR'

    def __init__(
        self,
        test: unittest.TestCase,
        connection: str | None = None,
        options: Sections = types.MappingProxyType({}),
        keystone: ty.Any = None,
    ) -> None:
        super().__init__(test)
        self._connection = connection
        self._options = options
        self._keystone = keystone

    def prepare(self) -> None:
        """Its configuration; the tables are made when it starts."""
        sections: dict[str, dict[str, ty.Any]] = {
            'api': {'auth_strategy': 'noauth2'},
            'placement_database': {
                'connection': self._connection
                or 'sqlite:///'
                + os.path.join(self.folder, 'placement.sqlite'),
                'sync_on_startup': True,
            },
        }
        if self._keystone is not None:
            sections['api']['auth_strategy'] = 'keystone'
            sections['keystone_authtoken'] = {
                'www_authenticate_uri': self._keystone.auth_url,
                'interface': 'public',
                **self._keystone.password,
            }
        for name, options in self._options.items():
            sections.setdefault(name, {}).update(options)
        self.write('placement.conf', sections)

    @property
    def options(self) -> dict[str, str]:
        """Options of who reaches it without keystone."""
        return {
            'auth_type': 'admin_token',
            'endpoint': self.endpoint,
            'token': 'admin',
        }

    def client(self) -> placement.Placement:
        """A client of an administrator, for a service without keystone."""
        return placement.Placement(self.adapter())

    def adapter(self) -> adapter.Adapter:
        """For what the client has no word for."""
        return adapter.Adapter(
            sessions.Session(),
            service_type='placement',
            auth=token_endpoint.Token(self.endpoint, 'admin'),
            default_microversion='1.37',
            raise_exc=True,
        )

    def make_compute(self, name: str, vcpus: int = 8) -> str:
        """A provider as nova-compute makes it; its UUID."""
        uuid = str(uuids.uuid4())
        session = self.adapter()
        session.post('/resource_providers', json={'uuid': uuid, 'name': name})
        session.put(
            '/resource_providers/%s/inventories' % uuid,
            json={
                'resource_provider_generation': 0,
                'inventories': {'VCPU': {'total': vcpus, 'max_unit': vcpus}},
            },
        )
        return uuid

    def claim(
        self, consumer: str, provider_uuid: str, **resources: int
    ) -> None:
        """Claim something for a new consumer, as a scheduler does."""
        self.adapter().put(
            '/allocations/' + consumer,
            json={
                'allocations': {provider_uuid: {'resources': resources}},
                'project_id': 'project',
                'user_id': 'user',
                'consumer_generation': None,
                'consumer_type': 'INSTANCE',
            },
            microversion='1.38',
        )


_shared: Placement | None = None


def shared_placement(test: unittest.TestCase) -> Placement:
    """A placement for all tests of this process; it ends with that."""
    global _shared
    if _shared is None:
        service = Placement(test)
        service.setUp()
        atexit.register(service.cleanUp)
        _shared = service
    return _shared


class Keystone(Service):
    """A keystone with an administrator and nothing else.

    :param connection: of its database; SQLite in its folder when None.
    """

    distribution = 'keystone'
    application = 'keystone.wsgi.api:application'
    variable = 'OS_KEYSTONE_CONFIG_DIR'

    def __init__(
        self, test: unittest.TestCase, connection: str | None = None
    ) -> None:
        super().__init__(test)
        self._connection = connection

    def prepare(self) -> None:
        """Database, keys, an administrator."""
        self.write(
            'keystone.conf',
            {
                'database': {
                    'connection': self._connection
                    or 'sqlite:///'
                    + os.path.join(self.folder, 'keystone.sqlite')
                },
                'identity': {'password_hash_rounds': 4},
                'token': {'provider': 'fernet'},
                'fernet_tokens': {
                    'key_repository': os.path.join(self.folder, 'fernet')
                },
                'fernet_receipts': {
                    'key_repository': os.path.join(self.folder, 'receipts')
                },
            },
        )
        config = '--config-file=' + os.path.join(self.folder, 'keystone.conf')
        self.run('keystone-manage', config, 'db_sync')
        self.run(
            'keystone-manage',
            config,
            'fernet_setup',
            '--keystone-user=root',
            '--keystone-group=root',
        )
        self.run(
            'keystone-manage',
            config,
            'bootstrap',
            '--bootstrap-password=secret',
            '--bootstrap-region-id=RegionOne',
            '--bootstrap-public-url=' + self.auth_url,
        )

    @property
    def auth_url(self) -> str:
        """Where to authenticate."""
        return self.endpoint + '/v3'

    @property
    def password(self) -> dict[str, str]:
        """Options of whoever is the administrator."""
        return {
            'auth_type': 'password',
            'auth_url': self.auth_url,
            'username': 'admin',
            'password': 'secret',
            'project_name': 'admin',
            'user_domain_id': 'default',
            'project_domain_id': 'default',
        }

    def adapter(
        self, service_type: str, url: str | None = None
    ) -> adapter.Adapter:
        """A session of the administrator with a service.

        :param url: of the service, when the catalogue is not to be asked.
        """
        options: dict[str, ty.Any] = {
            name: value
            for name, value in self.password.items()
            if name != 'auth_type'
        }
        auth = v3.Password(**options)
        return adapter.Adapter(
            sessions.Session(auth=auth),
            service_type=service_type,
            interface='public',
            endpoint_override=url,
            default_microversion='1.37' if url is None else None,
        )

    def add_service(self, service_type: str, url: str) -> None:
        """Put a service into the catalogue."""
        session = self.adapter('identity', self.auth_url)
        service = session.post(
            '/services',
            json={'service': {'type': service_type, 'name': service_type}},
        ).json()['service']
        session.post(
            '/endpoints',
            json={
                'endpoint': {
                    'service_id': service['id'],
                    'interface': 'public',
                    'region_id': 'RegionOne',
                    'url': url,
                }
            },
        )

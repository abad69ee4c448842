# SPDX-License-Identifier: Apache-2.0

"""Servers that speak TLS as ``doc/source/install/tls.rst`` says."""

import os
import shutil
import subprocess

import fixtures

from vsched_standalone.tests import documentation
from vsched_standalone.tests import private_services

PAGE = 'install/tls.rst'
_SITE = os.path.abspath(
    os.path.join(
        os.path.dirname(__file__),
        '..',
        '..',
        'etc',
        'vsched',
        'nginx-vsched.conf',
    )
)


def replaced(text: str, *changes: tuple[str, str]) -> str:
    """A text with some of its words replaced.

    :raises LookupError: when it lacks one of them.
    """
    for old, new in changes:
        if old not in text:
            raise LookupError('%s is not in %s' % (old, text))
        text = text.replace(old, new)
    return text


class Certificates(fixtures.Fixture):
    """An authority, and the certificate of a server on this machine."""

    def _setUp(self) -> None:
        self.folder = self.useFixture(fixtures.TempDir()).path
        for name in ('tls-authority', 'tls-certificate'):
            subprocess.run(
                [
                    'sh',
                    '-ec',
                    documentation.block(PAGE, name).replace(
                        'controller', 'localhost'
                    ),
                ],
                cwd=self.folder,
                check=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
        self.authority = os.path.join(self.folder, 'ca.crt')

    def install(self, folder: str, user: str) -> None:
        """Copy what a server needs to where its user can read it."""
        for name in ('ca.crt', 'server.crt', 'server.key'):
            path = shutil.copy(os.path.join(self.folder, name), folder)
            shutil.chown(path, user, user)
            os.chmod(path, 0o600)


class _Tls(private_services.Service):
    """A service that has certificates; to be mixed into one."""

    def __init__(self, certificates: Certificates) -> None:
        self.certificates = certificates

    def prepare(self) -> None:
        """Give it the certificates."""
        super().prepare()
        self.certificates.install(self.folder, self.user)


class Rabbit(_Tls, private_services.Rabbit):
    """A broker as documented."""

    def prepare(self) -> None:
        """Its configuration."""
        super().prepare()
        text = replaced(
            documentation.block(PAGE, 'tls-rabbitmq'),
            (
                'listeners.ssl.default = 5671',
                'listeners.ssl.1 = 127.0.0.1:%d' % self.port,
            ),
            ('/etc/rabbitmq', self.folder),
        )
        with open(
            os.path.join(self.folder, 'rabbitmq.conf'), 'w', encoding='ascii'
        ) as file:
            file.write(text + 'disk_free_limit.absolute = 50MB\n')


class _Database(_Tls):
    """A database whose options are also those of its command line."""

    block: str
    place: str

    def command(self) -> tuple[list[str], dict[str, str]]:
        """The server in the foreground."""
        command, environment = super().command()
        text = replaced(
            documentation.block(PAGE, self.block), (self.place, self.folder)
        )
        for line in text.splitlines():
            if '=' in line:
                name, value = (part.strip(" '") for part in line.split('=', 1))
                command.append('--%s=%s' % (name, value))
        return command, environment


class Postgres(_Database, private_services.Postgres):
    """A database as documented."""

    block, place = 'tls-postgresql', '/etc/postgresql'


class MariaDB(_Database, private_services.MariaDB):
    """A database as documented."""

    block, place = 'tls-mariadb', '/etc/mysql'


class Nginx(_Tls, private_services.Nginx):
    """The sample of a reverse proxy, in front of an API.

    :param upstream: port of the API.
    :param port: where it listens.
    """

    def __init__(
        self, certificates: Certificates, upstream: int, port: int
    ) -> None:
        super().__init__(certificates)
        self.upstream, self.port = upstream, port

    def site(self) -> str:
        """The sample with this machine's names and ports."""
        with open(_SITE, encoding='ascii') as file:
            return replaced(
                file.read(),
                ('vsched.example.org', 'localhost'),
                ('listen 443 ssl', 'listen 127.0.0.1:%d ssl' % self.port),
                (
                    '/etc/ssl/certs/vsched.pem',
                    os.path.join(self.folder, 'server.crt'),
                ),
                (
                    '/etc/ssl/private/vsched.key',
                    os.path.join(self.folder, 'server.key'),
                ),
                (
                    'http://127.0.0.1:8790',
                    'http://127.0.0.1:%d' % self.upstream,
                ),
            )

# SPDX-License-Identifier: Apache-2.0

"""The documented commands for TLS, against servers of our own."""

import json
import os
import subprocess
import sys

import fixtures
from oslo_config import cfg
from oslotest import base
import requests

from vsched_api.conf import startup
from vsched_api.db import errors as db_errors
from vsched_api.db import migration
from vsched_api.db import session
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.tests import requirements
from vsched_lib.tests import rpc_suite
from vsched_standalone.tests import deployment
from vsched_standalone.tests import documentation
from vsched_standalone.tests import private_services
from vsched_standalone.tests import tls_services

#: Only a hang takes longer, in seconds.
PATIENCE_S = 120
#: So long does a client try that is not to be answered.
REFUSED_S = 5

_REPORT = """
import os, sys
from oslo_config import cfg
from vsched_lib.contract import collector_rpc, errors, messages, rpc
conf = cfg.ConfigOpts()
conf([], default_config_files=[sys.argv[1]])
try:
    collector_rpc.CollectorClient(
        rpc.get_transport(conf), float(sys.argv[2])).report(
        messages.Report('node1', 1, 1.0))
    print('stored', flush=True)
except errors.Unreachable as error:
    print(type(error).__name__, flush=True)
os._exit(0)
"""


class TestTls(base.BaseTestCase):
    """Who is answered, and who is not."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.certificates = cls.make_certificates()
        # Of somebody else, for the same name.
        cls.others = cls.make_certificates()

    @classmethod
    def make_certificates(cls):
        made = tls_services.Certificates()
        made.setUp()
        cls.addClassCleanup(made.cleanUp)
        return made

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path

    def write(self, name, *changes, more='', file='vsched.conf'):
        path = os.path.join(self.folder, file)
        with open(path, 'w', encoding='ascii') as opened:
            opened.write(
                tls_services.replaced(
                    documentation.block(tls_services.PAGE, name), *changes
                )
                + more
            )
        return path

    def bus(self, port, authority, *changes):
        conf = cfg.ConfigOpts()
        conf(
            [],
            default_config_files=[
                self.write(
                    'tls-bus',
                    (
                        'vsched:SECRET@controller:5671/vsched',
                        'guest:guest@localhost:%d/' % port,
                    ),
                    ('/etc/vsched/ca.crt', authority),
                    *changes,
                )
            ],
        )
        return conf

    def test_the_broker(self):
        broker = self.useFixture(tls_services.Rabbit(self.certificates))
        transport = rpc.get_transport(
            self.bus(broker.port, self.certificates.authority)
        )
        self.addCleanup(transport.cleanup)
        collector = rpc_suite.Collector()
        server = rpc.get_server(
            transport, collector_rpc.TOPIC, 'one', [collector]
        )
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        report = messages.Report('node1', 1, 1.0)
        collector_rpc.CollectorClient(transport, PATIENCE_S).report(report)
        self.assertEqual([report], collector.reports)
        self.assertIn('stored', self.attempt(PATIENCE_S / 2))
        for refused in (
            (self.others.authority,),
            (self.certificates.authority, ('ssl = true', 'ssl = false')),
            # The certificate is not for this name.
            (self.certificates.authority, ('@localhost:', '@127.0.0.1:')),
        ):
            self.bus(broker.port, *refused)
            self.assertIn('BusUnavailable', self.attempt(REFUSED_S))
        self.assertEqual([report] * 2, collector.reports)

    def attempt(self, timeout_s):
        """Report in a process of its own: it tries again for ever."""
        return subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                '-c',
                _REPORT,
                os.path.join(self.folder, 'vsched.conf'),
                str(timeout_s),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        ).stdout

    def database(self, name, port, authority, user, place, host='localhost'):
        conf = startup.read(
            'vsched-manage',
            [
                '--config-file',
                self.write(
                    name,
                    (
                        'vsched:SECRET@controller/vsched',
                        '%s@%s:%d/%s' % (user, host, port, place),
                    ),
                    ('/etc/vsched/ca.crt', authority),
                ),
            ],
            [],
        )
        return conf

    def check_database(self, name, port, user, place, asked):
        authority = self.certificates.authority
        conf = self.database(name, port, authority, user, place)
        migration.sync(conf)
        self.assertEqual(migration.newest(), migration.version(conf))
        database = session.Database(conf)
        self.addCleanup(database.dispose)
        self.assertIn(
            'TLS',
            str(
                database.read(
                    lambda work: work.connection().exec_driver_sql(asked).one()
                )
            ),
        )
        for refused in (
            self.database(name, port, self.others.authority, user, place),
            # The certificate is not for this name.
            self.database(name, port, authority, user, place, '127.0.0.1'),
        ):
            self.assertRaises(
                db_errors.DatabaseUnavailable, migration.version, refused
            )

    def test_postgresql(self):
        server = self.useFixture(tls_services.Postgres(self.certificates))
        self.check_database(
            'tls-postgresql-client',
            server.port,
            'vsched',
            'postgres',
            'SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()',
        )

    def test_mariadb(self):
        server = self.useFixture(tls_services.MariaDB(self.certificates))
        self.check_database(
            'tls-mariadb-client',
            server.port,
            'root',
            'vsched',
            "SHOW STATUS LIKE 'Ssl_version'",
        )

    def ask(self, authority, url):
        """What vsched-status says of a filter's way to the API."""
        path = self.write(
            'tls-rest-client',
            *(
                ()
                if authority is None
                else (('/etc/vsched/ca.crt', authority),)
            ),
            more='auth_type = none\nendpoint_override = %s\ntimeout = 60\n'
            '[filter_scheduler]\n'
            'available_filters = nova_filters.all_filters\n'
            'enabled_filters = VschedReservationFilter\n' % url,
            file='nova.conf',
        )
        if authority is None:
            with open(path, encoding='ascii') as file:
                lines = [
                    line for line in file if not line.startswith('cafile')
                ]
            with open(path, 'w', encoding='ascii') as file:
                file.writelines(lines)
        done = subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                '-m',
                'vsched_api.cmd.status',
                '--config-file',
                os.path.join(self.folder, 'empty.conf'),
                '--nova-conf',
                path,
                'upgrade',
                'check',
                '--json',
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        checks = {
            one['check']: one for one in json.loads(done.stdout)['checks']
        }
        found = checks['What filters ask']
        return found['result'], found['details'] or ''

    def test_rest(self):
        if private_services.Nginx.program() is None:
            requirements.require(self, 'nginx', 'not in PATH')
        database = 'sqlite:///' + os.path.join(self.folder, 'vsched.sqlite')
        with open(os.path.join(self.folder, 'empty.conf'), 'w') as file:
            file.write('[database]\nconnection = %s\n' % database)
        port = private_services.free_port()
        url = 'https://localhost:%d' % port
        options = cfg.ConfigOpts()
        options.register_opt(cfg.StrOpt('public_endpoint'), group='api')
        options(
            [],
            default_config_files=[
                self.write('tls-rest', ('https://controller', url))
            ],
        )
        api = self.useFixture(
            deployment.Deployment(
                'fake:/',
                database,
                parts=('api',),
                options={
                    'api': {'public_endpoint': options.api.public_endpoint}
                },
            )
        )
        proxy = self.useFixture(
            tls_services.Nginx(self.certificates, api.port, port)
        )
        own = self.certificates.authority
        self.assertEqual((0, ''), self.ask(own, url))
        for authority, address, words in (
            # Without the authority, and with another one.
            (None, url, 'certificate verify failed'),
            (self.others.authority, url, 'certificate verify failed'),
            # The certificate is not for this name.
            (own, 'https://127.0.0.1:%d' % proxy.port, 'IP address'),
            # Not in the clear.
            (own, 'http://localhost:%d' % proxy.port, 'answers 400'),
        ):
            result, details = self.ask(authority, address)
            self.assertEqual(1, result, (address, details))
            self.assertIn(words, details)
        # Clients that follow links stay with it.
        reply = requests.get(url, verify=own, timeout=PATIENCE_S)
        self.assertEqual(
            {True},
            {
                link['href'].startswith(url)
                for version in reply.json()['versions']
                for link in version['links']
            },
            reply.text,
        )
        self.assertEqual(
            403,
            requests.get(
                url + '/metrics', verify=own, timeout=PATIENCE_S
            ).status_code,
        )
        self.assertRaises(
            requests.exceptions.SSLError, requests.get, url, timeout=PATIENCE_S
        )

# SPDX-License-Identifier: Apache-2.0

"""A stock Prometheus with the files of ``etc/vsched``."""

import os
import subprocess
import time

from oslo_config import cfg
from oslotest import base
import requests

from vsched_agent.metrics import recorder
from vsched_api.collector import metrics
from vsched_api.tests import monitoring
from vsched_lib.metrics import server
from vsched_lib.tests import requirements
from vsched_standalone.tests import documentation
from vsched_standalone.tests import monitored_services
from vsched_standalone.tests import private_services
from vsched_standalone.tests import tls_services

PATIENCE_S = 240


class _MutualNginx(tls_services.Nginx):
    """The sample of a reverse proxy with the documented change for mTLS.

    :param clients: the authority of clients.
    """

    def __init__(self, certificates, clients, upstream, port):
        super().__init__(certificates, upstream, port)
        self.clients = clients

    def prepare(self):
        super().prepare()
        for name, text in (
            ('clients.crt', self._authority()),
            (
                'token.conf',
                'proxy_set_header Authorization "Bearer %s";\n'
                % monitored_services.TOKEN,
            ),
        ):
            path = os.path.join(self.folder, name)
            with open(path, 'w', encoding='ascii') as file:
                file.write(text)

    def _authority(self):
        with open(self.clients.authority, encoding='ascii') as file:
            return file.read()

    def site(self):
        return tls_services.replaced(
            super().site(),
            (
                'location = /metrics { deny all; }',
                tls_services.replaced(
                    documentation.block(
                        monitored_services.PAGE, 'metrics-mtls'
                    ),
                    (
                        '/etc/ssl/certs/prometheus-ca.crt',
                        os.path.join(self.folder, 'clients.crt'),
                    ),
                    (
                        '/etc/nginx/vsched-scrape-token.conf',
                        os.path.join(self.folder, 'token.conf'),
                    ),
                    (
                        'http://127.0.0.1:8790',
                        'http://127.0.0.1:%d' % self.upstream,
                    ),
                ),
            ),
        )


class TestPrometheus(base.BaseTestCase):
    """Services with a seeded database, and what is scraped of them."""

    def setUp(self):
        super().setUp()
        for name in ('prometheus', 'promtool'):
            if private_services.Prometheus.program(name) is None:
                requirements.require(
                    self, 'prometheus', '%s is not in PATH' % name
                )
        self.services = self.useFixture(monitored_services.MonitoredServices())

    def start(self, files):
        return self.useFixture(private_services.Prometheus(files))

    def check(self, prometheus, *words, given=None):
        """Run promtool in the folder of the files."""
        done = subprocess.run(
            [private_services.Prometheus.program('promtool'), *words],
            cwd=prometheus.folder,
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
        )
        said = (done.stdout + done.stderr).decode()
        self.assertEqual(0, done.returncode, said)
        return said

    def until(self, condition):
        """Wait until a condition holds, and return what it returns last."""
        give_up = time.monotonic() + PATIENCE_S
        while not (found := condition()) and time.monotonic() < give_up:
            time.sleep(0.5)
        return found

    def until_equal(self, expected, query):
        """Wait until a query returns this.

        Its last answer counts: a scrape that takes too long leaves a gap,
        which another query might meet.
        """
        found = None

        def equal():
            nonlocal found
            found = query()
            return found == expected

        self.until(equal)
        self.assertEqual(expected, found)

    def targets(self, prometheus):
        return {
            one['labels']['job']: (one['health'], one['lastError'])
            for one in prometheus.ask('targets', state='active')[
                'activeTargets'
            ]
        }

    def test_rules_and_dashboards(self):
        self.services.seed()
        prometheus = self.start(self.services.files())
        self.check(prometheus, 'check', 'config', 'prometheus.yaml')
        self.check(prometheus, 'check', 'rules', 'rules.yaml')
        self.check(prometheus, 'test', 'rules', 'rules-test.yaml')
        up = {
            'vsched-agent': ('up', ''),
            'vsched-api': ('up', ''),
            'vsched-collector': ('up', ''),
        }
        self.until_equal(up, lambda: self.targets(prometheus))
        # What was scraped follows the conventions.
        for port in (
            self.services.port,
            self.services.collector_port,
            self.services.agent_port,
        ):
            answer = requests.get(
                'http://127.0.0.1:%d/metrics' % port,
                headers={
                    'Authorization': 'Bearer ' + monitored_services.TOKEN
                },
                timeout=PATIENCE_S,
            )
            self.assertEqual(200, answer.status_code)
            self.check(prometheus, 'check', 'metrics', given=answer.content)

        self.until_equal(
            [], lambda: monitored_services.empty(self.services, prometheus)
        )
        # Each rule is parsed and was evaluated.
        rules = self.until(
            lambda: self.rules(prometheus, {'ok'})
        ) or self.rules(prometheus)
        self.assertEqual(dict.fromkeys(monitoring.alerts(), ('ok', '')), rules)
        # One that fires, and one that does not.
        self.until_equal(
            ['0.25'],
            lambda: [
                one['value'][1]
                for one in prometheus.ask(
                    'query',
                    query=monitoring.alerts()['VschedBandwidthLeaked']['expr'],
                )['result']
            ],
        )
        self.until_equal(
            [],
            lambda: prometheus.ask(
                'query', query=monitoring.alerts()['VschedHostDown']['expr']
            )['result'],
        )

    def rules(self, prometheus, expected=None):
        """Return health and error by rule.

        :param expected: None is returned while there is another health.
        """
        found = {
            rule['name']: (rule['health'], rule.get('lastError', ''))
            for group in prometheus.ask('rules')['groups']
            for rule in group['rules']
        }
        if expected is not None and (
            expected != {health for health, _ in found.values()}
        ):
            return None
        return found

    def test_without_the_token(self):
        files = {**self.services.files(), 'token': 'x' * 32}
        prometheus = self.start(files)

        found = None

        def refused():
            nonlocal found
            found = self.targets(prometheus).get('vsched-api', ('', ''))
            # Not only too slow.
            return found[0] == 'down' and '401' in found[1]

        self.assertTrue(self.until(refused), found)

    def start_mutual(self, certificates, clients, ports):
        """Start one with the documented job for mTLS.

        :param certificates: of the servers.
        :param clients: the authority of clients, and their certificate.
        :param ports: on this machine, by the name of the job.
        """
        options = tls_services.replaced(
            documentation.block(monitored_services.PAGE, 'metrics-mtls-job'),
            ('/etc/prometheus/', 'FOLDER/'),
        )

        def content(fixture, name):
            path = os.path.join(fixture.folder, name)
            with open(path, encoding='ascii') as file:
                return file.read()

        return self.start(
            {
                'prometheus.yaml': 'scrape_configs:\n'
                + ''.join(
                    '  - job_name: %s\n'
                    '    scrape_interval: %ds\n'
                    '    static_configs:\n'
                    '      - targets: [localhost:%d]\n'
                    % (name, monitored_services.SCRAPE_S, port)
                    + ''.join(
                        '    %s\n' % line for line in options.splitlines()
                    )
                    for name, port in ports.items()
                ),
                'vsched-ca.crt': content(certificates, 'ca.crt'),
                'prometheus.crt': content(clients, 'server.crt'),
                'prometheus.key': content(clients, 'server.key'),
            }
        )

    def serve(self, group, registry, certificates, clients):
        """Serve metrics with the documented options for mTLS.

        :returns: the port.
        """
        path = os.path.join(certificates.folder, group + '.conf')
        with open(path, 'w', encoding='ascii') as file:
            file.write(
                tls_services.replaced(
                    documentation.block(
                        monitored_services.PAGE, 'metrics-mtls-options'
                    ),
                    ('[agent]', '[%s]' % group),
                    ('192.0.2.11', '127.0.0.1'),
                    ('8799', str(private_services.free_port())),
                    (
                        '/etc/vsched/metrics.crt',
                        os.path.join(certificates.folder, 'server.crt'),
                    ),
                    (
                        '/etc/vsched/metrics.key',
                        os.path.join(certificates.folder, 'server.key'),
                    ),
                    ('/etc/vsched/prometheus-ca.crt', clients.authority),
                )
            )
        conf = cfg.ConfigOpts()
        conf.register_opts(server.options('the ' + group), group)
        conf(['--config-file', path], project='vsched')
        serving = server.Server(server.Settings.of(conf, group), registry)
        serving.start()
        self.addCleanup(serving.stop)
        return serving.port

    def test_mutual_tls_of_collectors_and_agents(self):
        certificates = self.useFixture(tls_services.Certificates())
        clients = self.useFixture(tls_services.Certificates())
        ports = {
            'vsched-collector': self.serve(
                'collector', metrics.Metrics().exposed(), certificates, clients
            ),
            'vsched-agent': self.serve(
                'agent',
                recorder.Recorder(lambda: 1).exposed(),
                certificates,
                clients,
            ),
        }
        for port in ports.values():
            # Not without a certificate.
            self.assertRaises(
                requests.exceptions.ConnectionError,
                requests.get,
                'https://localhost:%d/metrics' % port,
                verify=certificates.authority,
                timeout=PATIENCE_S,
            )
        prometheus = self.start_mutual(certificates, clients, ports)
        self.check(prometheus, 'check', 'config', 'prometheus.yaml')
        up = dict.fromkeys(ports, ('up', ''))
        self.until_equal(up, lambda: self.targets(prometheus))

    def test_mutual_tls(self):
        if private_services.Nginx.program() is None:
            requirements.require(self, 'nginx', 'not in PATH')
        self.services.seed()
        certificates = self.useFixture(tls_services.Certificates())
        clients = self.useFixture(tls_services.Certificates())
        proxy = self.useFixture(
            _MutualNginx(
                certificates,
                clients,
                self.services.port,
                private_services.free_port(),
            )
        )
        url = 'https://localhost:%d/metrics' % proxy.port
        # Not without a certificate, whoever has the token.
        self.assertEqual(
            403,
            requests.get(
                url,
                headers={
                    'Authorization': 'Bearer ' + monitored_services.TOKEN
                },
                verify=certificates.authority,
                timeout=PATIENCE_S,
            ).status_code,
        )
        prometheus = self.start_mutual(
            certificates, clients, {'vsched-api': proxy.port}
        )
        self.check(prometheus, 'check', 'config', 'prometheus.yaml')
        found = self.until(
            lambda: prometheus.ask('query', query='vsched_host_up')['result']
        )
        self.assertEqual(
            [monitored_services.HOST],
            [one['metric']['host'] for one in found],
            self.targets(prometheus),
        )

# SPDX-License-Identifier: Apache-2.0

"""Where links lead, behind a proxy and without."""

from vsched_api.tests import base


class TestLinks(base.TestCase):
    """The links of one host with an odd name."""

    def setUp(self):
        super().setUp()
        for name in ('a&b=c d/é?', 'z'):
            self.agent(name).first()

    def hrefs(self, path='/v1/hosts?limit=1', **headers):
        found = self.client().get(path, headers=headers).json
        return [link['href'] for link in found['links']]

    def test_a_link_can_be_followed(self):
        here, there = self.hrefs()
        self.assertEqual('http://localhost/v1/hosts?limit=1', here)
        http = self.client()
        page = http.get(there).json
        self.assertEqual(['z'], [host['name'] for host in page['hosts']])

    def test_the_service_may_be_told_where_it_is(self):
        self.conf.set_override(
            'public_endpoint', 'https://cloud.example/vsched/', 'api'
        )
        self.assertEqual(
            'https://cloud.example/vsched/v1/hosts?limit=1', self.hrefs()[0]
        )

    def test_a_proxy_may_tell_where_it_is(self):
        http = self.client()
        self.conf.set_override(
            'enable_proxy_headers_parsing', True, 'oslo_middleware'
        )
        link = http.get(
            '/v1/hosts',
            headers={
                'X-Forwarded-Proto': 'https',
                'X-Forwarded-Host': 'cloud.example',
                'X-Forwarded-Prefix': '/vsched',
            },
        ).json['links'][0]
        self.assertEqual('https://cloud.example/vsched/v1/hosts', link['href'])

    def test_a_host_that_nobody_configured_is_not_repeated(self):
        for host in (
            'evil.example',
            'evil.example:8790',
            'localhost@evil',
            'localhost.evil.example',
            'evil/.localhost',
            '[::1',
            'localhost:80"><script>',
            'local host',
            '',
        ):
            links = self.hrefs(Host=host)
            self.assertEqual('/v1/hosts?limit=1', links[0])
            self.assertEqual(
                [], [one for one in links if not one.startswith('/v1/hosts?')]
            )

    def test_hosts_that_are_configured(self):
        self.conf.set_override(
            'trusted_hosts',
            ['api.example.org', '.inner.example', '::1'],
            'api',
        )
        for host, name in (
            ('API.example.org', 'api.example.org'),
            ('api.example.org:8790', 'api.example.org:8790'),
            ('a.b.inner.example', 'a.b.inner.example'),
            ('[::1]:8790', '[::1]:8790'),
        ):
            self.assertEqual(
                'http://%s/v1/hosts?limit=1' % name, self.hrefs(Host=host)[0]
            )
        for host in ('inner.example', 'xinner.example', 'example.org'):
            self.assertEqual('/v1/hosts?limit=1', self.hrefs(Host=host)[0])

    def test_a_proxy_that_nobody_configured(self):
        self.assertEqual(
            '/v1/hosts?limit=1',
            self.hrefs(
                **{'Host': 'evil.example', 'X-Forwarded-Host': 'localhost'}
            )[0],
        )

    def test_no_redirect_names_the_host(self):
        answer = self.client().get(
            '/v1//hosts', headers={'Host': 'evil.example'}
        )
        self.assertEqual(404, answer.status_code)
        self.assertNotIn('Location', answer.headers)

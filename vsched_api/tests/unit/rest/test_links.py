# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
            'public_endpoint', 'https://cloud.example/vsched/', 'api')
        self.assertEqual(
            'https://cloud.example/vsched/v1/hosts?limit=1',
            self.hrefs()[0])

    def test_a_proxy_may_tell_where_it_is(self):
        http = self.client()
        self.conf.set_override(
            'enable_proxy_headers_parsing', True, 'oslo_middleware')
        link = http.get('/v1/hosts', headers={
            'X-Forwarded-Proto': 'https',
            'X-Forwarded-Host': 'cloud.example',
            'X-Forwarded-Prefix': '/vsched'}).json['links'][0]
        self.assertEqual('https://cloud.example/vsched/v1/hosts',
                         link['href'])

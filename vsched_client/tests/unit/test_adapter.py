# SPDX-License-Identifier: Apache-2.0

"""Requests: versions, errors, pages, repetitions."""

from keystoneauth1 import exceptions
from keystoneauth1 import fixture
from keystoneauth1.identity import v3
from keystoneauth1 import session
import requests

from vsched_client import adapter
from vsched_client import errors
from vsched_client.tests.unit import api_case
from vsched_client.v1 import client

failure = api_case.failure


class RequestTestCase(api_case.ApiTestCase):
    def test_headers(self):
        self.answer('GET', '/v1/hosts/node1', {'host': {'name': 'node1'}})
        self.assertEqual({'name': 'node1'}, self.client.hosts.get('node1'))
        headers = self.api.last_request.headers
        self.assertEqual('vsched 1.0', headers['OpenStack-API-Version'])
        self.assertEqual('application/json', headers['Accept'])
        self.assertIn('vsched-client', headers['User-Agent'])
        self.assertEqual(adapter.TIMEOUT_S, self.api.last_request.timeout)

    def test_another_version(self):
        self.answer('GET', '/v1/hosts/node1', {'host': {}})
        self.make(default_microversion='1.7').hosts.get('node1')
        self.assertEqual(
            'vsched 1.7',
            self.api.last_request.headers['OpenStack-API-Version'],
        )

    def test_names_are_quoted(self):
        self.answer('GET', '/v1/hosts/a%2Fb%3Fc%20d', {'host': {}})
        self.client.hosts.get('a/b?c d')
        for name in ('', '.', '..'):
            error = self.assertRaises(
                errors.ClientError, self.client.hosts.get, name
            )
            self.assertIn('accepted: a name', str(error))

    def test_error(self):
        self.answer('GET', '/v1/hosts/node1', failure(404))
        error = self.assertRaises(
            errors.NotFound, self.client.hosts.get, 'node1'
        )
        self.assertEqual('vsched.some.code', error.code)

    def test_an_answer_of_something_else(self):
        for one in (
            {'text': '<html>'},
            {'json': []},
            {'json': {}},
            {'json': {'host': 7}},
        ):
            self.answer('GET', '/v1/hosts/node1', one)
            self.assertRaises(
                errors.MalformedAnswer, self.client.hosts.get, 'node1'
            )

    def test_no_connection(self):
        self.answer('GET', '/v1/hosts/node1', exc=requests.ConnectTimeout)
        error = self.assertRaises(
            errors.NoAnswer, self.client.hosts.get, 'node1'
        )
        self.assertIn('GET /v1/hosts/node1', str(error))

    def test_no_content(self):
        self.answer('DELETE', '/v1/hosts/node1', status_code=204, text='')
        self.assertIsNone(self.client.hosts.delete('node1', force=True))
        self.assertEqual(['true'], self.api.last_request.qs['force'])
        self.client.hosts.delete('node1')
        self.assertEqual({}, self.api.last_request.qs)


class RepetitionTestCase(api_case.ApiTestCase):
    found = {'host': {'name': 'node1'}}

    def test_a_query_is_repeated(self):
        self.answer(
            'GET',
            '/v1/hosts/node1',
            failure(503, Retry_After='3'),
            failure(503),
            self.found,
        )
        self.assertEqual('node1', self.client.hosts.get('node1')['name'])
        self.assertEqual([3.0, 1.0], self.slept)

    def test_delays_are_bounded(self):
        for text in ('86400', 'inf', '-5', 'nan', 'tomorrow'):
            self.answer(
                'GET',
                '/v1/hosts/node1',
                failure(503, Retry_After=text),
                self.found,
            )
            self.client.hosts.get('node1')
        self.assertEqual([10.0, 10.0, 0.0, 0.0, 0.5], self.slept)

    def test_repetitions_are_bounded(self):
        self.answer('GET', '/v1/hosts/node1', failure(503))
        self.assertRaises(errors.Unavailable, self.client.hosts.get, 'node1')
        self.assertEqual(adapter.RETRIES, len(self.slept))
        self.assertEqual(adapter.RETRIES + 1, self.api.call_count)

    def test_other_errors_are_not_repeated(self):
        self.answer('GET', '/v1/hosts/node1', failure(500))
        self.assertRaises(errors.ServerError, self.client.hosts.get, 'node1')
        self.assertEqual([], self.slept)

    def test_a_change_is_repeated_only_if_it_has_not_begun(self):
        path = '/v1/jobs/uuid'
        self.answer('PATCH', path, failure(503, 'vsched.database.unavailable'))
        self.assertRaises(errors.Unavailable, self.client.jobs.cancel, 'uuid')
        self.assertEqual([], self.slept)
        self.answer(
            'PATCH',
            path,
            failure(503, 'vsched.identity.unavailable'),
            {'job': {'uuid': 'uuid'}},
        )
        self.client.jobs.cancel('uuid')
        self.assertEqual([0.5], self.slept)
        self.assertEqual({'wanted': 'cancel'}, self.api.last_request.json())


class PagesTestCase(api_case.ApiTestCase):
    def page(self, *names, marker=None, host='elsewhere'):
        links = [{'rel': 'self', 'href': '/'}]
        if marker is not None:
            links.append(
                {
                    'rel': 'next',
                    'href': 'http://%s/v1/hosts?limit=1&marker=%s'
                    % (host, marker),
                }
            )
        return {'hosts': [{'name': one} for one in names], 'links': links}

    def names(self, **more):
        return [one['name'] for one in self.client.hosts.list(**more)]

    def test_all_pages(self):
        self.answer(
            'GET',
            '/v1/hosts',
            self.page('a', 'b', marker='b'),
            self.page('c', marker='c'),
            self.page('d'),
        )
        self.assertEqual(['a', 'b', 'c', 'd'], self.names())
        # To the endpoint, not to where the link leads.
        self.assertEqual(
            [{}, {'marker': ['b']}, {'marker': ['c']}],
            [one.qs for one in self.api.request_history],
        )
        self.assertEqual(
            {'vsched.example'},
            {one.hostname for one in self.api.request_history},
        )

    def test_pages_are_read_when_they_are_needed(self):
        self.answer(
            'GET', '/v1/hosts', self.page('a', marker='a'), self.page('b')
        )
        found = self.client.hosts.list()
        self.assertEqual(0, self.api.call_count)
        next(found)
        self.assertEqual(1, self.api.call_count)

    def test_limit(self):
        self.answer(
            'GET',
            '/v1/hosts',
            self.page('a', 'b', marker='b'),
            self.page('c', 'd', marker='d'),
        )
        self.assertEqual(['a', 'b', 'c'], self.names(limit=3))
        self.assertEqual(
            ['3', '1'],
            [one.qs['limit'][0] for one in self.api.request_history],
        )

    def test_a_page_that_leads_to_itself(self):
        self.answer('GET', '/v1/hosts', self.page('a', marker='a'))
        self.assertRaises(errors.MalformedAnswer, self.names)

    def test_an_empty_page_is_the_last(self):
        self.answer('GET', '/v1/hosts', self.page(marker='x'))
        self.assertEqual([], self.names())

    def test_no_list(self):
        self.answer('GET', '/v1/hosts', {'hosts': 7})
        self.assertRaises(errors.MalformedAnswer, self.names)

    def test_links_of_another_form(self):
        for links in (7, [7], [{}], None):
            self.answer(
                'GET', '/v1/hosts', {'hosts': [{'name': 'a'}], 'links': links}
            )
            self.assertEqual(['a'], self.names())

    def test_a_link_without_a_marker(self):
        page = self.page('a')
        page['links'].append({'rel': 'next', 'href': '/v1/hosts'})
        self.answer('GET', '/v1/hosts', page)
        self.assertEqual(['a'], self.names())

    def test_repeated_and_boolean_parameters(self):
        self.answer('GET', '/v1/jobs', {'jobs': []})
        list(self.client.jobs.list(states=('queued', 'running'), host='n'))
        self.assertEqual(
            {'state': ['queued', 'running'], 'host': ['n']},
            self.api.last_request.qs,
        )
        self.answer('GET', '/v1/instances', {'instances': []})
        list(self.client.instances.list(present=False))
        self.assertEqual({'present': ['false']}, self.api.last_request.qs)
        list(
            self.client.instances.list(
                states=('refused', 'degraded'),
                sort_key='host',
                descending=True,
            )
        )
        self.assertEqual(
            {
                'state': ['refused', 'degraded'],
                'sort_key': ['host'],
                'sort_dir': ['desc'],
            },
            self.api.last_request.qs,
        )
        self.answer('GET', '/v1/instances/u', {'instance': {'name': 'a'}})
        self.assertEqual('a', self.client.instances.get('u')['name'])


class KeystoneTestCase(api_case.ApiTestCase):
    """With the catalogue of keystone, which requests-mock answers for."""

    def keystone(self, *services):
        token = fixture.V3Token()
        token.set_project_scope()
        for service_type, url in services:
            token.add_service(service_type).add_standard_endpoints(public=url)
        self.api.get(
            'http://keystone.example/v3',
            json={'version': fixture.V3Discovery('http://keystone.example')},
        )
        self.api.post(
            'http://keystone.example/v3/auth/tokens',
            json=token,
            headers={'X-Subject-Token': 'secret'},
        )
        return client.Client(
            session.Session(
                v3.Password(
                    'http://keystone.example/v3',
                    username='admin',
                    password='password',
                    user_domain_id='default',
                    project_name='admin',
                    project_domain_id='default',
                )
            ),
            interface='public',
        )

    def test_endpoint_and_token(self):
        asked = self.keystone(('vsched', api_case.URL))
        self.answer('GET', '/v1/hosts/node1', {'host': {'name': 'node1'}})
        self.assertEqual('node1', asked.hosts.get('node1')['name'])
        self.assertEqual(
            'secret', self.api.last_request.headers['X-Auth-Token']
        )

    def test_no_endpoint(self):
        asked = self.keystone(('compute', 'http://nova.example'))
        error = self.assertRaises(errors.NoAnswer, asked.hosts.get, 'node1')
        self.assertIn('no endpoint of service type vsched', str(error))

    def test_no_token(self):
        asked = self.keystone()
        self.api.post(
            'http://keystone.example/v3/auth/tokens',
            exc=exceptions.Unauthorized,
        )
        error = self.assertRaises(errors.NoAnswer, asked.hosts.get, 'node1')
        self.assertNotIn('password', str(error))

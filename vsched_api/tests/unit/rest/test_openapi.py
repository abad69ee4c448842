# SPDX-License-Identifier: Apache-2.0

"""The OpenAPI document has all that the routes take and answer."""

import re
from unittest import mock

import flask
import jsonschema
from oslotest import base as test_base

from vsched_api import nouns
from vsched_api import policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import openapi_document
from vsched_api.rest import validation
from vsched_api.tests import base
from vsched_lib.contract import errors

EXAMPLES = {
    'name': 'node1',
    'job_uuid': '0b7d3a52-1c1e-4f6e-9a55-6d1f0a1f7c11',
    'instance_uuid': '3a9d1c3e-5b1c-4c53-a2a4-6bb0a2e0a1a1',
}


#: They are for browsers, and not in the document.
FILES = ('/ui', '/ui/{view}', '/ui/{view}/{item}', '/ui/assets/{asset}')


def operations(document):
    """Return (path, method, operation) of each."""
    return [
        (path, method.upper(), operation)
        for path, methods in document['paths'].items()
        for method, operation in methods.items()
    ]


def walk(value, path=''):
    """Yield every object in a JSON value, with where it is."""
    if isinstance(value, dict):
        yield path, value
        for name, one in value.items():
            yield from walk(one, '%s/%s' % (path, name))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from walk(one, '%s/%d' % (path, number))


class TestDocument(test_base.BaseTestCase):
    """As it is made."""

    def setUp(self):
        super().setUp()
        self.document = openapi_document.document()

    def test_it_has_each_operation_of_the_policies(self):
        self.assertEqual(
            {
                (one['path'], one['method'], rule.name)
                for rule in policies.list_rules()
                for one in getattr(rule, 'operations', ())
                if one['path'] not in FILES
            },
            {
                (path, method, operation['x-vsched-policy'])
                for path, method, operation in operations(self.document)
            },
        )

    def test_operations_have_names_and_words(self):
        names = set()
        for path, method, operation in operations(self.document):
            where = '%s %s' % (method, path)
            self.assertRegex(operation['summary'], r'^[A-Z].{5,90}\.$', where)
            self.assertIn(operation['tags'][0], nouns.NOUNS, where)
            names.add(operation['operationId'])
        self.assertEqual(len(operations(self.document)), len(names))

    def test_only_prometheus_has_a_token_of_its_own(self):
        schemes = self.document['components']['securitySchemes']
        self.assertEqual(
            ('http', 'bearer'),
            tuple(schemes['scrapeToken'][one] for one in ('type', 'scheme')),
        )
        self.assertEqual([{'token': []}, {}], self.document['security'])
        self.assertEqual(
            {'/metrics': [{'token': []}, {'scrapeToken': []}, {}]},
            {
                path: operation['security']
                for path, _, operation in operations(self.document)
                if 'security' in operation
            },
        )

    def test_path_parameters_are_declared(self):
        for path, _, operation in operations(self.document):
            self.assertEqual(
                re.findall(r'{(\w+)}', path),
                [
                    one['name']
                    for one in operation['parameters']
                    if one.get('in') == 'path' and one['required']
                ],
            )

    def test_every_reference_leads_somewhere(self):
        count = 0
        for path, found in walk(self.document):
            if '$ref' in found:
                self.assertRegex(found['$ref'], '^#/')
                target = self.document
                for name in found['$ref'][2:].split('/'):
                    self.assertIn(name, target, path)
                    target = target[name]
                count += 1
        self.assertGreater(count, 100)

    def test_schemas_are_json_schema(self):
        for name, schema in self.document['components']['schemas'].items():
            self.assertEqual(name, schema['title'])
            jsonschema.Draft202012Validator.check_schema(schema)

    def test_answers_are_closed_and_whole(self):
        for _, _, operation in operations(self.document):
            for status, answer in operation['responses'].items():
                if not status.startswith('2'):
                    continue
                for found in answer.get('content', {}).values():
                    for _, one in self._of_answer(found['schema']):
                        if one.get('type') == 'object' and (
                            'properties' in one
                        ):
                            self.assertIs(False, one['additionalProperties'])
                            self.assertEqual(
                                set(one['properties']), set(one['required'])
                            )

    def _of_answer(self, schema):
        """Yield every part of a schema, referenced ones included."""
        left, seen = [schema], []
        while left:
            for path, found in walk(left.pop()):
                if '$ref' in found and found['$ref'] not in seen:
                    seen.append(found['$ref'])
                    left.append(
                        self.document['components']['schemas'][
                            found['$ref'].rpartition('/')[2]
                        ]
                    )
                yield path, found

    def test_everything_is_described(self):
        for path, found in walk(self.document):
            if path.endswith('/properties'):
                for name, one in found.items():
                    if set(one) == {'$ref'}:
                        # It has a name.
                        continue
                    text = one.get('description')
                    self.assertRegex(
                        text or '', r'(?s)^[A-Z`(0-9].*[.;]$', path + name
                    )
                    # It is reStructuredText as well.
                    self.assertNotRegex(text, r':\w+:`|(?<!`)`(?!`)')
        for path, _, operation in operations(self.document):
            for one in operation['parameters']:
                if '$ref' not in one:
                    self.assertRegex(one['description'], r'\.$', path)

    def test_errors_have_the_stable_codes(self):
        self.assertEqual(
            list(map(str, errors.Code)),
            self.document['components']['schemas']['Error']['properties'][
                'code'
            ]['enum'],
        )
        for _, _, operation in operations(self.document):
            self.assertLessEqual(
                {'400', '401', '403', '406', '500', '503'},
                set(operation['responses']),
            )

    def test_a_route_without_documentation_is_an_error(self):
        app = flask.Flask('vsched_api', static_folder=None)
        app.add_url_rule('/v1/forgotten', view_func=lambda: 'x')
        problem = self.assertRaises(
            openapi_document.Undocumented, openapi_document.of, app
        )
        self.assertEqual('GET /v1/forgotten', str(problem))

    def test_two_schemas_with_one_name_are_an_error(self):
        app = flask.Flask('vsched_api', static_folder=None)
        blueprint = flask.Blueprint('x', 'x')
        for number, kind in enumerate(('string', 'integer')):

            @documentation.operation(
                'rule', {'type': kind, 'title': 'Same', 'description': 'X.'}
            )
            def handler():
                """Do it."""

            blueprint.add_url_rule(
                '/%d' % number, str(number), view_func=handler
            )
        app.register_blueprint(blueprint)
        self.assertRaises(ValueError, openapi_document.of, app)


class TestHandlers(base.TestCase):
    """Each handler does what is documented of it."""

    def test_only_files_of_the_page_are_not_documented(self):
        served = self.http.application
        self.assertEqual(
            set(FILES),
            {
                openapi_document.path_of(rule)
                for rule in served.url_map.iter_rules()
                if documentation.is_static(
                    served.view_functions[rule.endpoint]
                )
            },
        )

    def setUp(self):
        super().setUp()
        self.agent().first(EXAMPLES['instance_uuid'])
        self.http = self.client()
        self.seen = []
        for module, name in (
            (authorization, 'enforce'),
            (validation, 'query'),
            (validation, 'body'),
        ):
            self._watch(module, name)

    def _watch(self, module, name):
        real = getattr(module, name)

        def call(argument):
            self.seen.append((name, argument))
            return real(argument)

        patch = mock.patch.object(module, name, call)
        patch.start()
        self.addCleanup(patch.stop)

    def test_policy_query_and_body_are_those_documented(self):
        served = self.http.application
        for rule, method, handler in openapi_document.routes(served):
            found = documentation.of(handler)
            self.seen.clear()
            self.http.open(
                re.sub(
                    r'<(\w+)>', lambda found: EXAMPLES[found[1]], rule.rule
                ),
                method=method,
                json=None if method in ('GET', 'DELETE') else {},
            )
            expected = [('enforce', found.rule), ('query', found.query)]
            if found.body is not None:
                expected.append(('body', found.body))
            self.assertEqual(expected, self.seen, (method, rule.rule))


class TestServed(base.TestCase):
    """As it is read."""

    PATH = '/v1/openapi.json'

    def test_all_of_it(self):
        answer = self.client().get(self.PATH)
        self.assertEqual(200, answer.status_code)
        self.assertEqual('application/json', answer.content_type)
        self.assertEqual(openapi_document.document(), answer.json)
        self.assertEqual('3.1.1', answer.json['openapi'])

    def test_who_has_it_is_not_sent_it_again(self):
        http = self.client()
        tag = http.get(self.PATH).headers['ETag']
        answer = http.get(self.PATH, headers={'If-None-Match': tag})
        self.assertEqual((304, b''), (answer.status_code, answer.data))
        self.assertEqual(tag, answer.headers['ETag'])
        answer = http.get(self.PATH, headers={'If-None-Match': '"x"'})
        self.assertEqual(200, answer.status_code)

    def test_it_says_where_the_service_is(self):
        answer = self.client().get(
            self.PATH, environ_overrides={'SCRIPT_NAME': '/cpu'}
        )
        self.assertEqual([{'url': '/cpu'}], answer.json['servers'])
        self.conf.set_override(
            'public_endpoint', 'https://cpu.example.org', 'api'
        )
        answer = self.client().get(self.PATH)
        self.assertEqual(
            [{'url': 'https://cpu.example.org'}], answer.json['servers']
        )

    def test_it_takes_no_query(self):
        answer = self.client().get(self.PATH + '?x=1')
        self.assertEqual(400, answer.status_code)

# SPDX-License-Identifier: Apache-2.0

"""The API reference knows every route, field and code."""

import json
import os
import re
import textwrap

import jsonschema
from oslotest import base

from vsched_api import app
from vsched_api import policies
from vsched_api.rest import openapi_document
from vsched_api.tests import conformance

_OPERATION = re.compile(r'^``([A-Z]+) (/\S*)``$', re.MULTILINE)
_EXAMPLE = re.compile(
    r'^\.\. code-block:: json\n\n((?:   .*\n|\n)+)', re.MULTILINE
)


class TestApiRef(base.BaseTestCase):
    """Reads the reference where the source tree has it."""

    def setUp(self):
        super().setUp()
        self.source = os.path.join(
            os.path.dirname(__file__), '..', '..', '..', 'api-ref', 'source'
        )
        if not os.path.isdir(self.source):
            self.skipTest('only the source tree has the reference')
        self.document = openapi_document.document()

    def texts(self):
        for name in sorted(os.listdir(self.source)):
            if name.endswith('.rst'):
                path = os.path.join(self.source, name)
                with open(path, encoding='utf-8') as file:
                    yield name, file.read()

    def directives(self, kind):
        return [
            found
            for _, text in self.texts()
            for found in re.findall(
                r'^\.\. vsched-%s:: (.*)$' % kind, text, re.MULTILINE
            )
        ]

    def test_every_route_is_described(self):
        described = {
            found
            for _, text in self.texts()
            for found in _OPERATION.findall(text)
        }
        self.assertEqual(
            {
                (operation['method'], operation['path'])
                for rule in policies.list_rules()
                for operation in getattr(rule, 'operations', ())
            }
            | {('GET', app.LIVENESS)},
            described,
        )

    def test_every_route_has_a_table_of_what_it_takes(self):
        self.assertEqual(
            sorted(
                '%s %s' % (method.upper(), path)
                for path, methods in self.document['paths'].items()
                for method in methods
            ),
            sorted(self.directives('request')),
        )

    def test_every_answer_has_a_table_of_its_fields(self):
        described = self.directives('fields')
        self.assertEqual(len(described), len(set(described)))
        shown = set()
        for title in described:
            self._add(title, shown)
        for path, methods in self.document['paths'].items():
            for method, operation in methods.items():
                needed = set()
                for status, answer in operation['responses'].items():
                    if status < '300':
                        _titles(answer, needed)
                for title in list(needed):
                    self._add(title, needed)
                self.assertLessEqual(
                    needed - _SUMMARIES, shown | {'Link'}, (method, path)
                )

    def _add(self, title, found):
        found.add(title)
        more = set()
        _titles(self.document['components']['schemas'][title], more)
        for one in more - found:
            self._add(one, found)

    def test_every_example_is_valid(self):
        count = 0
        for name, text in self.texts():
            for found in _EXAMPLE.finditer(text):
                before = _OPERATION.findall(text[: found.start()])
                value = json.loads(textwrap.dedent(found[1]))
                schemas = list(self._schemas(*(before[-1] if before else ())))
                problems = [
                    str(problem.message)
                    for schema in schemas
                    for problem in [
                        jsonschema.exceptions.best_match(
                            jsonschema.Draft202012Validator(
                                {
                                    **schema,
                                    'components': self.document['components'],
                                },
                                format_checker=conformance.FORMATS,
                            ).iter_errors(value)
                        )
                    ]
                    if problem is not None
                ]
                self.assertLess(
                    len(problems), len(schemas), (name, value, problems)
                )
                count += 1
        self.assertGreater(count, 20)

    def _schemas(self, method=None, path=None):
        """The schemas of one operation; those of errors without one."""
        if method is None:
            yield {'$ref': '#/components/schemas/Errors'}
            return
        operation = self.document['paths'][path][method.lower()]
        contents = [
            answer.get('content', {})
            for status, answer in operation['responses'].items()
            if status < '300'
        ]
        if 'requestBody' in operation:
            contents.append(operation['requestBody']['content'])
        for content in contents:
            if 'application/json' in content:
                yield content['application/json']['schema']


#: Lists show less of these than the table of the whole has.
_SUMMARIES = frozenset(
    ('ErrorProfile', 'Host', 'HostUsageBucket', 'OverheadProfile')
)


def _titles(value, found):
    """Add the titles of the schemas that a value refers to."""
    if isinstance(value, dict):
        if '$ref' in value and '/schemas/' in value['$ref']:
            found.add(value['$ref'].rpartition('/')[2])
        for one in value.values():
            _titles(one, found)
    elif isinstance(value, list):
        for one in value:
            _titles(one, found)

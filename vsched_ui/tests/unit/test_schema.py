# SPDX-License-Identifier: Apache-2.0

"""The types of the page are of the OpenAPI document of these sources.

``tools/check-generated.sh`` compares all of them, where Node is installed.
"""

import collections
import dataclasses
import pathlib
import re
import typing as ty

from oslotest import base

from vsched_api.rest import openapi_document

SCHEMA = pathlib.Path(__file__).parents[2] / 'src' / 'api' / 'schema.d.ts'
REMEDY = (
    'vsched_ui/src/api/schema.d.ts is not of this OpenAPI document: run '
    '"npm ci" in vsched_ui, then tools/check-generated.sh --write'
)

#: How TypeScript calls the types of JSON Schema.
BASIC = {
    'string': 'string',
    'integer': 'number',
    'number': 'number',
    'boolean': 'boolean',
    'null': 'null',
}

_COMMENT = re.compile(r'/\*\*.*?\*/', re.S)
_REFERENCE = re.compile(r'components\["schemas"\]\["(\w+)"\]')
_OTHER_REFERENCE = re.compile(r'components\["\w+"\]\["[^"]+"\]')
_MEMBER = re.compile(r'^ *"?([\w./-]+)"?(\??): ', re.M)
_LITERAL = re.compile(r'"([^"]*)"')
_BASIC = re.compile(r'\b(string|number|boolean|null)\b')


def members(text, indent):
    """Return the texts of what begins at an indent, by name."""
    begun = list(
        re.finditer(r'^ {%d}"?([\w./{}-]+)"?\??: ' % indent, text, re.M)
    )
    ends = [*(one.start() for one in begun[1:]), len(text)]
    return {
        one.group(1): text[one.end() : end]
        for one, end in zip(begun, ends, strict=True)
    }


def part(text, name):
    """Return the text of an interface of the module."""
    return re.search(
        r'^export interface %s \{\n(.*?)^\}' % name, text, re.M | re.S
    ).group(1)


def _counter():
    return dataclasses.field(default_factory=collections.Counter)


@dataclasses.dataclass
class Facts:
    """What a type has, counted, without the structure.

    :param members: names of properties, with whether each may be missing.
    :param references: names of schemas.
    :param values: of enumerations.
    :param types: of values that are none of these.
    """

    members: collections.Counter[ty.Any] = _counter()
    references: collections.Counter[ty.Any] = _counter()
    values: collections.Counter[ty.Any] = _counter()
    types: collections.Counter[ty.Any] = _counter()


def written(text):
    """Return the facts of a type that is written in TypeScript."""
    found = Facts()
    found.references.update(_REFERENCE.findall(text))
    text = _OTHER_REFERENCE.sub('', text)
    # The names of an open object are any strings.
    text = re.sub(r'\[key: string\]|Record<string, never>', '', text)
    found.members.update(
        (name, mark == '?') for name, mark in _MEMBER.findall(text)
    )
    text = _MEMBER.sub('', text)
    found.values.update(_LITERAL.findall(text))
    text = _LITERAL.sub('', text)
    found.types.update(_BASIC.findall(text))
    return found


def documented(schema, found=None):
    """Return the facts of a schema of the document."""
    found = Facts() if found is None else found
    if '$ref' in schema:
        found.references[schema['$ref'].rpartition('/')[2]] += 1
        return found
    required = schema.get('required', ())
    for name, one in schema.get('properties', {}).items():
        found.members[name, name not in required] += 1
        documented(one, found)
    kinds = schema.get('type', ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if 'enum' in schema or 'const' in schema:
        values = schema.get('enum', [schema.get('const')])
        found.values.update(one for one in values if one is not None)
        found.types['null'] += None in values
    else:
        found.types.update(BASIC[kind] for kind in kinds if kind in BASIC)
    for key in ('items', 'additionalProperties'):
        if isinstance(schema.get(key), dict):
            documented(schema[key], found)
    for key in ('anyOf', 'oneOf', 'allOf'):
        for one in schema.get(key, ()):
            documented(one, found)
    return found


class TestSchema(base.BaseTestCase):
    """Needs no Node."""

    maxDiff = None

    def setUp(self):
        super().setUp()
        self.document = openapi_document.document()
        self.text = _COMMENT.sub('', SCHEMA.read_text(encoding='utf-8'))
        self.operations = {
            one['operationId']: one
            for path in self.document['paths'].values()
            for one in path.values()
        }

    def test_it_has_every_path(self):
        self.assertEqual(
            {
                path: {
                    method: one['operationId'] for method, one in of.items()
                }
                for path, of in self.document['paths'].items()
            },
            {
                path: dict(re.findall(r'(\w+): operations\["(\w+)"\]', body))
                for path, body in members(part(self.text, 'paths'), 4).items()
            },
            REMEDY,
        )

    def test_it_has_every_schema(self):
        schemas = self.document['components']['schemas']
        components = members(part(self.text, 'components'), 4)
        found = members(components['schemas'], 8)
        self.assertEqual(set(schemas), set(found), REMEDY)
        for name, schema in schemas.items():
            self.assertEqual(
                documented(schema),
                written(found[name]),
                '%s: %s' % (name, REMEDY),
            )

    def test_it_has_every_operation(self):
        found = members(part(self.text, 'operations'), 4)
        self.assertEqual(set(self.operations), set(found), REMEDY)
        for name, one in self.operations.items():
            parts = members(found[name], 8)
            self.assertEqual(
                self.parameters(one),
                {
                    place: written(body)
                    for place, body in members(parts['parameters'], 12).items()
                    if place in ('query', 'path') and '{' in body
                },
                '%s: %s' % (name, REMEDY),
            )
            self.assertEqual(
                set(one['responses']),
                set(members(parts['responses'], 12)),
                '%s: %s' % (name, REMEDY),
            )
            self.assertEqual(
                self.bodies(one),
                self.written_bodies(parts),
                '%s: %s' % (name, REMEDY),
            )

    def parameters(self, operation):
        """Return the facts of parameters, by where they are."""
        found = {}
        for one in operation['parameters']:
            place = one.get('in')
            if place in ('query', 'path'):
                facts = found.setdefault(place, Facts())
                facts.members[one['name'], not one.get('required', False)] += 1
                documented(one['schema'], facts)
        return found

    def bodies(self, operation):
        """Return the facts of what is sent and answered, together."""
        found = Facts()
        for one in (
            operation.get('requestBody', {}),
            *operation['responses'].values(),
        ):
            for content in one.get('content', {}).values():
                documented(content['schema'], found)
        return found

    def written_bodies(self, parts):
        """Return the same of the types of an operation."""
        return written(
            '\n'.join(
                re.sub(r'^ *"[a-z]+/[^"]+": ', '', line)
                for text in (parts.get('requestBody', ''), parts['responses'])
                for body in re.findall(
                    r'^ *content: \{\n(.*?)^ *\};\n(?= {8}\}| {12}\})',
                    text,
                    re.M | re.S,
                )
                for line in body.splitlines()
            )
        )

# SPDX-License-Identifier: Apache-2.0

"""Tables of the API reference, from the OpenAPI document."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import typing as ty

from docutils import nodes
from docutils import statemachine
import vsched_tables

from vsched_api.rest import openapi_document

Schema = dict[str, ty.Any]

#: What every operation takes or answers, and another page describes.
_EVERYWHERE = frozenset(('links',))


class Request(vsched_tables.Table):
    """Parameters and body of an operation, its policy and its errors.

    The arguments are method and path.
    """

    head = ('Name', 'In', 'Type', 'Meaning')
    widths = (20, 10, 20, 50)
    required_arguments = 2

    def rows(self) -> Iterable[Sequence[str]]:
        for one in self._operation['parameters']:
            if '$ref' in one:
                continue
            yield (
                '``%s``' % one['name'],
                one['in'],
                kind(one['schema']),
                one['description'],
            )
        body = self._operation.get('requestBody')
        if body is not None:
            schema = body['content']['application/json']['schema']
            for name, type_, text in fields(schema):
                yield name, 'body', type_, text

    @property
    def _operation(self) -> Schema:
        method, path = self.arguments
        try:
            found: Schema = openapi_document.document()['paths'][path][
                method.lower()
            ]
        except KeyError:
            raise self.error('no operation %s %s' % (method, path)) from None
        return found

    def run(self) -> list[nodes.Node]:
        made = super().run() if any(True for _ in self.rows()) else []
        lines = ['Policy: ``%s``.' % self._operation['x-vsched-policy']]
        for status, answer in self._operation['responses'].items():
            # Those that are references are of all operations.
            if status >= '400' and '$ref' not in answer:
                lines.append(
                    '%s: %s'
                    % (status, answer['description'].partition(': ')[2])
                )
        node = nodes.Element()
        self.state.nested_parse(
            statemachine.StringList([' '.join(lines)], 'vsched_openapi'),
            self.content_offset,
            node,
        )
        return [*made, *node.children]


class Fields(vsched_tables.Table):
    """The fields of an object in answers.

    The argument is the name of its schema.
    """

    head = ('Field', 'Type', 'Meaning')
    widths = (30, 20, 50)
    required_arguments = 1

    def rows(self) -> Iterable[Sequence[str]]:
        (title,) = self.arguments
        schemas = openapi_document.document()['components']['schemas']
        if title not in schemas:
            raise self.error('no schema %s' % title)
        return fields(schemas[title])


def fields(schema: Schema, prefix: str = '') -> Iterator[tuple[str, str, str]]:
    """Yield name, type and meaning of each field, nested ones included."""
    schema = resolved(schema)
    for name, one in schema.get('properties', {}).items():
        if name in _EVERYWHERE and not prefix:
            continue
        text = one.get('description') or resolved(one).get('description', '')
        if name in schema.get('required', ()) and (
            set(schema['required']) != set(schema['properties'])
        ):
            text = 'Required. ' + text
        yield '``%s%s``' % (prefix, name), kind(one), text
        inner, suffix = one, ''
        if one.get('type') == 'array':
            inner, suffix = one['items'], '[]'
        yield from fields(inner, '%s%s%s.' % (prefix, name, suffix))


def resolved(schema: Schema) -> Schema:
    """Return the schema that a reference leads to, without null."""
    for one in schema.get('anyOf', ()):
        if '$ref' in one and {'type': 'null'} in schema['anyOf']:
            schema = one
    if '$ref' in schema:
        found: Schema = openapi_document.document()['components']['schemas'][
            schema['$ref'].rpartition('/')[2]
        ]
        return found
    return schema


def kind(schema: Schema) -> str:
    """Return the type of a value in words."""
    if {'type': 'null'} in schema.get('anyOf', ()):
        return 'object or null'
    schema = resolved(schema)
    kinds = schema.get('type', 'object')
    kinds = list(kinds) if isinstance(kinds, list) else [kinds]
    words = []
    for one in kinds:
        if one == 'array':
            words.append('list of: ' + kind(schema['items']))
        elif one == 'string' and 'enum' in schema:
            words.append(
                ', '.join('``%s``' % word for word in schema['enum'] if word)
            )
        elif one == 'string':
            words.append(_FORMATS.get(schema.get('format', ''), 'text'))
        else:
            words.append(one)
    text = ' or '.join(words)
    if 'minimum' in schema:
        # Bounds as high as these only keep out what no column stores.
        text += (
            ', %s to %s' % (schema['minimum'], schema['maximum'])
            if schema['maximum'] < _HUGE
            else ', %s or more' % schema['minimum']
        )
    return text


_HUGE = 10**9
_FORMATS = {'uuid': 'UUID', 'date-time': 'time'}


def setup(app: ty.Any) -> dict[str, ty.Any]:
    """Called by Sphinx."""
    app.add_directive('vsched-request', Request)
    app.add_directive('vsched-fields', Fields)
    return {'version': '1', 'parallel_read_safe': False}

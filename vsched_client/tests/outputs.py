# SPDX-License-Identifier: Apache-2.0

"""What commands write for programs, and whether it is what the API has.

The schema of an output is made of the columns of its command and of the
schemas of the OpenAPI document: a column has the name, the type and the unit
of a field of the API. Those that are computed have a schema here.
"""

import argparse
from collections.abc import Mapping
from collections.abc import Sequence
import csv
import functools
import io
import json
import typing as ty

from cliff import lister
import jsonschema
import yaml

from vsched_api.rest import openapi_document
from vsched_api.tests import conformance
from vsched_client.tests import entry_points
from vsched_lib.presentation import error_csv

Json = dict[str, ty.Any]

#: Formats that every command has, besides that for people.
FORMATS = ('json', 'yaml', 'csv')

_LINKS = 'links'
_EXPORT = 'cpu profile export'

_TEXT: Json = {'type': 'string'}
_COUNT: Json = {'type': 'integer'}
_SPECS: Json = {'type': 'object', 'additionalProperties': _TEXT}
_CHANGE: Json = {
    'extra_spec': _TEXT,
    'before': {'type': ['string', 'null']},
    'after': {'type': ['string', 'null']},
}

#: The schema of the API that a row or an object is of.
_OBJECTS = {
    'cpu host': 'Host',
    'cpu host audit': 'HostDifference',
    'cpu host show': 'DetailedHost',
    'cpu reservation': 'Reservation',
    'cpu profile list': 'ErrorProfile',
    'cpu profile create': 'Job',
    'cpu job': 'Job',
    'cpu balloon': 'Balloon',
    'cpu balloon history': 'BalloonChange',
    'cpu event': 'Event',
    'cpu evaluation': 'EvaluatedHost',
    'cpu flavor': 'FlavorClaim',
}

#: What the library computes of samples.
_TOTAL: Json = {
    'instance_uuid': {'type': 'string', 'format': 'uuid'},
    'host': {'type': ['string', 'null']},
    'server_name': {'type': ['string', 'null']},
    'project_id': {'type': ['string', 'null']},
    'flavor_name': {'type': ['string', 'null']},
    'at': {'type': 'string', 'format': 'date-time'},
    'samples': _COUNT,
    'interval_us': _COUNT,
}

#: What Nova has of a flavor.
_FLAVOR: Json = {
    'id': _TEXT,
    'name': _TEXT,
    'vcpus': _COUNT,
    'extra_specs': _SPECS,
    'claim_extra_specs': _SPECS,
    'differences': {
        'type': 'array',
        'items': {
            'type': 'object',
            'properties': _CHANGE,
            'required': list(_CHANGE),
            'additionalProperties': False,
        },
    },
}

#: The columns of an exported profile; all others are integers.
_TABLE: Json = dict.fromkeys(
    error_csv.COLUMNS, {'type': ['integer', 'null']}
) | {'backend': _TEXT, 'probe': _TEXT, 'share_pct': {'type': 'number'}}

#: By unit, as which what is computed with it is written.
_UNITS = {'us': 'integer', 'mcpu': 'integer', 'ppm': 'integer'}


def document() -> Json:
    """Return the OpenAPI document."""
    return openapi_document.document()


def _properties(name: str) -> Json:
    """Return the properties of a schema of the document, but for links."""
    found = document()['components']['schemas'][name]['properties']
    return {key: one for key, one in found.items() if key != _LINKS}


def _or_null(schema: Json) -> Json:
    return {'anyOf': [schema, {'type': 'null'}]}


def _part(name: str, field: str) -> Json:
    """Return the schema of a field of what may be null."""
    return _or_null(_properties(name)[field])


def _computed(command: str) -> Json:
    """Return the schemas of the columns that have no field of their name."""
    if command == 'cpu host list':
        return {
            'backends': {
                'type': 'array',
                'items': _properties('HostBackend')['name'],
            },
            'placement': _part('HostPlacement', 'state'),
        }
    if command == 'cpu reservation list':
        return {
            'enforced_backend': _part('EnforcedReservation', 'backend'),
            'enforced_bandwidth_mcpu': _part(
                'EnforcedReservation', 'bandwidth_mcpu'
            ),
        }
    if command == 'cpu balloon list':
        return {
            'order_state': _part('BalloonOrder', 'state'),
            'target_vcpus': _part('BalloonOrder', 'target_vcpus'),
            'frozen': _part('BalloonOrder', 'frozen'),
            'generation': _part('BalloonOrder', 'generation'),
        }
    if command == 'cpu profile list':
        return {'kind': {'type': 'string', 'enum': ['error', 'overhead']}}
    if command == 'cpu evaluation create':
        return {'placed': _properties('EvaluationPlace')['instances']}
    if command == 'cpu flavor sync':
        return {'flavor': _TEXT, **_CHANGE}
    return {}


def _fields(command: str, options: argparse.Namespace) -> Json:
    """Return the fields of the API that a row or an object is made of."""
    if command == 'cpu usage top':
        return dict(_TOTAL)
    if command == 'cpu usage show':
        return _properties(
            '%s%s'
            % (
                'HostUsage' if options.of == 'hosts' else 'Usage',
                'Sample' if options.resolution == 'raw' else 'Bucket',
            )
        )
    if command == 'cpu profile show':
        name, point = {
            'error': ('DetailedErrorProfile', 'ErrorPoint'),
            'overhead': ('DetailedOverheadProfile', 'OverheadPrice'),
        }[options.kind]
        return {**_properties(name), **_properties(point)}
    if command == 'cpu flavor sync':
        return {}
    noun = command.rpartition(' ')[0]
    return _properties(_OBJECTS.get(command) or _OBJECTS[noun]) | (
        _FLAVOR if noun == 'cpu flavor' else {}
    )


def _column(field: str, fields: Json, computed: Json) -> Json:
    if field in computed:
        return ty.cast(Json, computed[field])
    if field in fields:
        return ty.cast(Json, fields[field])
    unit = field.rpartition('_')[2]
    if unit not in _UNITS:
        raise AssertionError('column %s: neither a field nor a unit' % field)
    return {'type': [_UNITS[unit], 'null']}


def _object(properties: Json) -> Json:
    return {
        'type': 'object',
        'properties': properties,
        'required': list(properties),
        'additionalProperties': False,
    }


def is_list(command: str) -> bool:
    """Return whether a command writes a list."""
    return issubclass(entry_points.load(command), lister.Lister)


class Output:
    """What one command writes.

    :param command: as its entry point names it, with blanks.
    :param arguments: the rest of the words.
    :param form: one of :data:`FORMATS`.
    """

    def __init__(
        self, command: str, arguments: Sequence[str], form: str
    ) -> None:
        self._command = command
        self._arguments = arguments
        self._form = form
        #: Of one row of a list, or of the object.
        self.schema = self._schema()

    def _schema(self) -> Json:
        if self._command == _EXPORT:
            # As the API has it.
            if self._form == 'csv':
                return _object(_TABLE)
            return {'$ref': '#/components/schemas/DetailedErrorProfile'}
        kind = entry_points.load(self._command)
        options = kind(None, None).get_parser('openstack')
        options = options.parse_args(list(self._arguments))
        fields = _fields(self._command, options)
        computed = _computed(self._command)
        if is_list(self._command):
            columns = kind(None, None).columns_of(options)
        else:
            columns = kind.columns
        found = {
            column.field: _column(column.field, fields, computed)
            for column in columns
        }
        return _object(found if is_list(self._command) else fields | found)

    def check(self, found: ty.Any) -> None:
        """Compare what the command has written with its schema.

        :param found: what was read.
        :raises AssertionError: naming what differs.
        """
        checker = jsonschema.Draft202012Validator(
            {**self.schema, 'components': document()['components']},
            format_checker=conformance.FORMATS,
        )
        for one in found if isinstance(found, list) else [found]:
            for problem in checker.iter_errors(one):
                raise AssertionError('%s: %s' % (self._command, problem))

    def read(self, text: str) -> ty.Any:
        """Read what the command has written.

        :returns: with the types that values have in JSON.
        """
        follows = '--follow' in self._arguments
        match self._form:
            case 'yaml':
                return yaml.safe_load(text)
            case 'json' if follows:
                return [json.loads(line) for line in text.splitlines()]
            case 'json':
                return json.loads(text)
        rows = csv.DictReader(
            io.StringIO(text, newline=''),
            # cliff's writer escapes.
            escapechar=None if follows else '\\',
            strict=True,
        )
        found = [self._typed(row) for row in rows]
        if is_list(self._command) or self._command == _EXPORT:
            return found
        if len(found) != 1:
            raise AssertionError(
                '%s: %d rows of one object' % (self._command, len(found))
            )
        return found[0]

    def _typed(self, row: Mapping[str, str]) -> Json:
        """Return values with their types, which text does not keep."""
        known = self.schema['properties']
        return {
            name: _value(text, _kinds(known.get(name, {})))
            for name, text in row.items()
        }


def _value(text: str, kinds: frozenset[str]) -> ty.Any:
    if not text and 'null' in kinds:
        return None
    if 'boolean' in kinds:
        return {'True': True, 'False': False}[text]
    if kinds & {'integer', 'number', 'array', 'object'}:
        return json.loads(text)
    return text


def _kinds(one: Json) -> frozenset[str]:
    """Return the types that a schema allows."""
    if '$ref' in one:
        name = one['$ref'].rpartition('/')[2]
        return _kinds(document()['components']['schemas'][name])
    if 'anyOf' in one:
        return functools.reduce(frozenset.union, map(_kinds, one['anyOf']))
    kinds = one.get('type', ())
    return frozenset([kinds] if isinstance(kinds, str) else kinds)

# SPDX-License-Identifier: Apache-2.0

"""The library's types are those of the API's answers."""

from collections.abc import Iterable
import functools
import importlib
import inspect
import operator
import pkgutil
import types
import typing as ty

from oslotest import base

from vsched_api.rest import openapi_document
from vsched_client import v1
from vsched_client.v1 import balloons
from vsched_client.v1 import base as v1_base
from vsched_client.v1 import evaluations
from vsched_client.v1 import events
from vsched_client.v1 import flavors
from vsched_client.v1 import hosts
from vsched_client.v1 import instances
from vsched_client.v1 import jobs
from vsched_client.v1 import profiles
from vsched_client.v1 import reservations
from vsched_client.v1 import usage

#: By the name of a schema of the OpenAPI document.
TYPES: ty.Mapping[str, ty.Any] = types.MappingProxyType(
    {
        'Author': v1_base.Author,
        'Balloon': balloons.Balloon,
        'BalloonChange': balloons.Change,
        'BalloonOrder': balloons.Order,
        'DetailedErrorProfile': profiles.ErrorProfile,
        'DetailedHost': hosts.DetailedHost,
        'DetailedOverheadProfile': profiles.OverheadProfile,
        'EnforcedReservation': reservations.Enforced,
        'ErrorBound': profiles.ErrorBound,
        'ErrorPoint': profiles.ErrorPoint,
        'EvaluatedHost': evaluations.Verdict,
        'Evaluation': evaluations.Evaluation,
        'EvaluationPlace': evaluations.Place,
        'EvaluationProblem': evaluations.Problem,
        'EvaluationWeights': evaluations.Weights,
        'Event': events.Event,
        'FlavorClaim': flavors.Claim,
        'Host': hosts.Host,
        'HostAudit': hosts.Audit,
        'HostBackend': hosts.Backend,
        'HostContradiction': hosts.Contradiction,
        'HostDifference': hosts.Difference,
        'HostFinding': hosts.Finding,
        'HostFindingCounts': hosts.FindingCounts,
        'HostPlacement': hosts.Placement,
        'HostPolicy': hosts.Policy,
        'HostUsageBucket': usage.HostSum,
        'HostUsageSample': usage.HostSample,
        'HostVerification': hosts.Verification,
        'Instance': instances.Instance,
        'Job': jobs.Job,
        'OverheadPoint': profiles.OverheadPoint,
        'OverheadPrice': profiles.OverheadPrice,
        'Reservation': reservations.Reservation,
        'ReservationCommunication': reservations.Communication,
        'ReservationIo': reservations.Io,
        'UsageBucket': usage.InstanceSum,
        'UsageSample': usage.InstanceSample,
        'UsageTotal': usage.InstanceTotal,
        'UsageWindow': usage.Window,
    }
)

#: Profiles of a page have a part of the fields of the type.
PARTS = types.MappingProxyType(
    {
        'ErrorProfile': 'DetailedErrorProfile',
        'OverheadProfile': 'DetailedOverheadProfile',
    }
)

#: Schemas of answers that the library has no type for, and why.
WITHOUT_TYPE = types.MappingProxyType(
    {
        'Error': 'read by vsched_client.errors',
        'Errors': 'read by vsched_client.errors',
        'Link': 'followed by vsched_client.adapter',
        'Readiness': 'for load balancers',
        'Session': "for the operators' page",
        'Snapshot': 'for the filters of nova-scheduler',
        'SnapshotCertificate': 'a part of Snapshot',
        'SnapshotFacts': 'a part of Snapshot',
        'SnapshotHost': 'a part of Snapshot',
        'SnapshotSlowdown': 'a part of Snapshot',
        'Version': 'negotiated by keystoneauth1',
    }
)

#: Followed by the adapter, and in no type.
_LINKS = 'links'

_SCALARS: ty.Mapping[str, ty.Any] = types.MappingProxyType(
    {
        'string': str,
        'integer': int,
        'number': float,
        'boolean': bool,
        'null': None,
    }
)


def _any_of(kinds: Iterable[ty.Any]) -> ty.Any:
    return functools.reduce(operator.or_, kinds)


def type_of(schema: ty.Any) -> ty.Any:
    """Return the type of values of a schema."""
    if '$ref' in schema:
        return TYPES[schema['$ref'].rpartition('/')[2]]
    if 'anyOf' in schema:
        return _any_of(map(type_of, schema['anyOf']))
    kind = schema['type']
    if isinstance(kind, list):
        return _any_of(type_of({**schema, 'type': one}) for one in kind)
    if kind == 'array':
        return types.GenericAlias(list, (type_of(schema['items']),))
    if kind == 'object':
        more = schema.get('additionalProperties')
        return types.GenericAlias(
            dict, (str, type_of(more) if more else ty.Any)
        )
    return _SCALARS[kind]


def _references(part: ty.Any) -> set[str]:
    """Return the names of the schemas that a part of the document names."""
    if isinstance(part, dict):
        found = set().union(*map(_references, part.values()))
        if '$ref' in part and '/schemas/' in part['$ref']:
            found.add(part['$ref'].rpartition('/')[2])
        return found
    if isinstance(part, list):
        return set().union(*map(_references, part))
    return set()


class OpenApiTestCase(base.BaseTestCase):
    maxDiff = None

    def setUp(self):
        super().setUp()
        self.document = openapi_document.document()
        self.schemas = self.document['components']['schemas']

    def fields(self, name):
        """Return the type of each property of a schema."""
        return {
            key: type_of(schema)
            for key, schema in self.schemas[name]['properties'].items()
            if key != _LINKS
        }

    def test_fields_and_their_types(self):
        for name, kind in TYPES.items():
            self.assertEqual(self.fields(name), ty.get_type_hints(kind), name)

    def test_profiles_of_pages(self):
        for part, whole in PARTS.items():
            self.assertLessEqual(
                self.fields(part).items(), self.fields(whole).items(), part
            )

    def test_each_schema_of_an_answer_has_a_type(self):
        found, added = (
            set(),
            _references(
                [
                    operation['responses']
                    for path in self.document['paths'].values()
                    for operation in path.values()
                ]
            ),
        )
        while added:
            found |= added
            added = _references([self.schemas[one] for one in found]) - found
        self.assertEqual(found, {*TYPES, *PARTS, *WITHOUT_TYPE})

    def test_each_type_has_a_schema(self):
        found = {
            kind
            for module in pkgutil.iter_modules(v1.__path__)
            for name, kind in inspect.getmembers(
                importlib.import_module('%s.%s' % (v1.__name__, module.name)),
                ty.is_typeddict,
            )
            # Bases of several types.
            if not name.startswith('_')
        }
        self.assertEqual(found, set(TYPES.values()))

    def test_every_item_of_usage_has_a_type(self):
        answer = self.document['paths']['/v1/usage']['get']['responses']['200']
        schema = answer['content']['application/json']['schema']
        self.assertEqual(
            usage.Sample, type_of(schema['properties']['usage']['items'])
        )

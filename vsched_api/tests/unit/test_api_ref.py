# SPDX-License-Identifier: Apache-2.0

"""The API reference knows every route, field and code."""

import importlib
import os
import pkgutil
import re

from oslotest import base

from vsched_api import app
from vsched_api import policies
from vsched_api import schemas


class TestApiRef(base.BaseTestCase):
    """Reads the reference where the source tree has it."""

    def setUp(self):
        super().setUp()
        self.source = os.path.join(
            os.path.dirname(__file__), '..', '..', '..', 'api-ref', 'source'
        )
        if not os.path.isdir(self.source):
            self.skipTest('only the source tree has the reference')

    def read(self, name):
        with open(os.path.join(self.source, name), encoding='utf-8') as file:
            return file.read()

    def test_every_route_is_described(self):
        described = {
            found
            for name in os.listdir(self.source)
            if name.endswith('.rst')
            for found in re.findall(
                r'^``([A-Z]+) (/\S*)``$', self.read(name), re.MULTILINE
            )
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

    def test_every_field_is_described(self):
        for found in pkgutil.iter_modules(schemas.__path__):
            if found.name == 'fields':
                continue
            module = importlib.import_module(
                '%s.%s' % (schemas.__name__, found.name)
            )
            text = self.read(found.name + '.rst')
            for schema in vars(module).values():
                if isinstance(schema, dict) and 'properties' in schema:
                    for field in schema['properties']:
                        self.assertRegex(text, r'(?m)^:(\w+, )*%s[:,]' % field)

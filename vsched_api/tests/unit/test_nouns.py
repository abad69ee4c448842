# SPDX-License-Identifier: Apache-2.0

"""The list of nouns is complete."""

import importlib
import pkgutil

from oslotest import base

from vsched_api import nouns
from vsched_api import policies
from vsched_api import rest


def having(package, name):
    """Return the modules of a package that have an attribute."""
    return {
        found.name
        for found in pkgutil.iter_modules(package.__path__)
        if hasattr(
            importlib.import_module('%s.%s' % (package.__name__, found.name)),
            name,
        )
    }


class TestNouns(base.BaseTestCase):
    """Of routes and of policies."""

    def test_each_module_with_routes_is_listed(self):
        self.assertEqual(set(nouns.NOUNS), having(rest, 'BLUEPRINT'))

    def test_each_module_with_rules_is_listed(self):
        self.assertEqual({'base', *nouns.NOUNS}, having(policies, 'RULES'))

# SPDX-License-Identifier: Apache-2.0

"""The nouns of the API, in the order in which they are documented.

Each is the name of a module in ``rest`` with its routes (``BLUEPRINT``) and
of one in ``policies`` with a rule for each route (``RULES``).
"""

from collections.abc import Iterator
import importlib
import types

NOUNS = (
    'versions',
    'openapi',
    'health',
    'metrics',
    'hosts',
    'profiles',
    'instances',
    'reservations',
    'balloons',
    'jobs',
    'events',
    'usage',
    'snapshot',
    'evaluations',
    'flavors',
    'page',
)


def modules(package: str) -> Iterator[types.ModuleType]:
    """Import and return the module of each noun.

    :param package: the full name of a package with a module for each.
    """
    for noun in NOUNS:
        yield importlib.import_module('%s.%s' % (package, noun))

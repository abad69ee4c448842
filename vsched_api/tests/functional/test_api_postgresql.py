# SPDX-License-Identifier: Apache-2.0

"""The YAML tests, on PostgreSQL."""

import os
import sys

from gabbi import driver

from vsched_api.tests import databases
from vsched_api.tests.functional import gabbi_fixtures

_TESTS = os.path.join(os.path.dirname(__file__), 'gabbits')


class Api(gabbi_fixtures.Api):
    """What the YAML tests run against."""

    kind = databases.PostgreSQL


def load_tests(loader, tests, pattern):
    """One suite for each file."""
    return driver.build_tests(
        _TESTS,
        loader,
        intercept=gabbi_fixtures.served,
        fixture_module=sys.modules[__name__],
        test_loader_name=__name__,
    )

# SPDX-License-Identifier: Apache-2.0

"""The YAML tests, on MariaDB."""

from vsched_api.tests import databases
from vsched_api.tests.functional import gabbi_fixtures


class Api(gabbi_fixtures.Api):
    """What the YAML tests run against."""

    kind = databases.MariaDB


def load_tests(loader, tests, pattern):
    """One suite for each file."""
    return gabbi_fixtures.build_tests(loader, __name__)

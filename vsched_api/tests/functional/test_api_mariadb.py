# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The YAML tests, on MariaDB."""

import os
import sys

from gabbi import driver

from vsched_api.tests import databases
from vsched_api.tests.functional import gabbi_fixtures

_TESTS = os.path.join(os.path.dirname(__file__), 'gabbits')


class Api(gabbi_fixtures.Api):
    """What the YAML tests run against."""

    kind = databases.MariaDB


def load_tests(loader, tests, pattern):
    """One suite for each file."""
    return driver.build_tests(
        _TESTS, loader, intercept=gabbi_fixtures.served,
        fixture_module=sys.modules[__name__], test_loader_name=__name__)

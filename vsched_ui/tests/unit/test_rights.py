# SPDX-License-Identifier: Apache-2.0

"""The page knows the policies of what it reads as the service has them."""

import pathlib
import re

from oslotest import base

from vsched_api import policies
from vsched_api.rest import openapi_document

RIGHTS = pathlib.Path(__file__).parents[2] / 'src' / 'model' / 'rights.ts'
VIEWS = RIGHTS.with_name('views.ts')


def constant(name):
    """Return the text of a constant of the module."""
    return re.search(
        r'^export const %s = [[{]\n(.*?)^[]}]' % name,
        RIGHTS.read_text(encoding='utf-8'),
        re.M | re.S,
    ).group(1)


class TestRights(base.BaseTestCase):
    """Needs no Node."""

    def setUp(self):
        super().setUp()
        self.policies = dict(
            re.findall(r"'(/[^']+)': '([^']+)',", constant('POLICIES'))
        )
        self.rules = {rule.name: rule for rule in policies.list_rules()}

    def test_each_route_has_its_policy(self):
        paths = openapi_document.document()['paths']
        self.assertLess(10, len(self.policies))
        self.assertEqual(
            {
                path: paths[path]['get']['x-vsched-policy']
                for path in self.policies
            },
            self.policies,
        )

    def test_views_need_policies_that_there_are(self):
        named = re.findall(
            r"'(vsched:[a-z_:]+)'", VIEWS.read_text(encoding='utf-8')
        )
        self.assertNotEqual([], named)
        self.assertLessEqual(set(named), set(self.rules))

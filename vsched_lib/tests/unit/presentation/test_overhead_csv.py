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

"""The table of an overhead profile."""

import csv
import io

from oslotest import base

from vsched_lib.presentation import overhead_csv
from vsched_lib.tests import overhead_profiles


class RenderTestCase(base.BaseTestCase):
    def test_one_row_a_point(self):
        profile = overhead_profiles.profile()
        text = overhead_csv.render(profile)
        self.assertNotIn('\r', text)
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(
            [{name: str(value) for name, value in point.to_dict().items()}
             for point in profile.points], rows)

# SPDX-License-Identifier: Apache-2.0

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
            [
                {name: str(value) for name, value in point.to_dict().items()}
                for point in profile.points
            ],
            rows,
        )

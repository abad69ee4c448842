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

"""An overhead profile as a table for other programs."""

import csv
import dataclasses
import io

from vsched_lib.contract import profiles

#: The columns: what a point has.
COLUMNS = tuple(
    field.name for field in dataclasses.fields(profiles.OverheadPoint))


def render(profile: profiles.OverheadProfile) -> str:
    """The points of a profile, one a row, below a row of names.

    :returns: :data:`COLUMNS`, separated by commas; lines end with a bare
        newline.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator='\n')
    writer.writeheader()
    for point in profile.points:
        writer.writerow(point.to_dict())
    return text.getvalue()

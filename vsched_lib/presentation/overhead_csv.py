# SPDX-License-Identifier: Apache-2.0

"""Convert an overhead profile to CSV."""

import csv
import dataclasses
import io

from vsched_lib.contract import profiles

#: The columns: the fields of a point.
COLUMNS = tuple(
    field.name for field in dataclasses.fields(profiles.OverheadPoint)
)


def render(profile: profiles.OverheadProfile) -> str:
    """Return the points of a profile, one a row, below a header row.

    :returns: :data:`COLUMNS`, separated by commas; lines end with a newline
        alone.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator='\n')
    writer.writeheader()
    for point in profile.points:
        writer.writerow(point.to_dict())
    return text.getvalue()

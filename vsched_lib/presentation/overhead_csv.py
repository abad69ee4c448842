# SPDX-License-Identifier: Apache-2.0

"""An overhead profile as a table for other programs."""

import csv
import dataclasses
import io

from vsched_lib.contract import profiles

#: The columns: what a point has.
COLUMNS = tuple(
    field.name for field in dataclasses.fields(profiles.OverheadPoint)
)


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

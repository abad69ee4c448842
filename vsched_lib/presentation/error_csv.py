# SPDX-License-Identifier: Apache-2.0

"""Convert an error profile to CSV."""

import csv
import io

from vsched_lib.contract import profiles
from vsched_lib.model import error

#: Confidences of the bounds of the errors' size, in percent.
CONFIDENCES_PCT = (80, 95)

_QUANTILES = tuple(
    'p%d_ppm' % (part_ppm // 10_000) for part_ppm in error.QUANTILES_PPM
)

#: The columns. ``size_bound_``: 99 of 100 errors are not larger, at this
#: confidence; empty when there are too few samples.
COLUMNS = (
    'backend',
    'period_us',
    'share_pct',
    'contenders',
    'probe',
    'n',
    'mean_ppm',
    'min_ppm',
    'max_ppm',
    *_QUANTILES,
    'abs_p50_ppm',
    'abs_p95_ppm',
    'abs_p99_ppm',
    'long_mean_ppm',
    *('size_bound_%d_ppm' % one for one in CONFIDENCES_PCT),
    'window_us',
)


def render(profile: profiles.ErrorProfile) -> str:
    """Return the points of a profile, one a row, below a header row.

    :returns: :data:`COLUMNS`, separated by commas; lines end with a newline
        alone.
    """
    text = io.StringIO()
    writer = csv.DictWriter(
        text, COLUMNS, extrasaction='ignore', lineterminator='\n'
    )
    writer.writeheader()
    for point in profile.points:
        writer.writerow(
            {
                **{name: getattr(point, name, '') for name in COLUMNS},
                'probe': point.probe.value,
                'share_pct': '%g' % (point.share_ppm / 10_000),
                **dict(zip(_QUANTILES, point.quantiles_ppm, strict=False)),
                **{
                    'size_bound_%d_ppm' % one: _bound(point, one)
                    for one in CONFIDENCES_PCT
                },
            }
        )
    return text.getvalue()


def _bound(point: profiles.ErrorPoint, confidence_pct: int) -> int | str:
    if not point.largest_ppm:
        return ''
    bound_ppm = point.statistics.size_ppm(confidence_pct / 100)
    return '' if bound_ppm is None else bound_ppm

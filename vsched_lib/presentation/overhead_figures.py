# SPDX-License-Identifier: Apache-2.0

"""Draw the figure of an overhead profile: predicted and measured cost."""

from matplotlib import figure as figures

from vsched_lib.contract import profiles
from vsched_lib.presentation import error_page as pages

_COLORS = {
    'net-rx': '#1f6fb4',
    'net-tx': '#e08214',
    'disk-read': '#2e8b57',
    'disk-write': '#9b59b6',
    'idle': '#6b6b6b',
}


def draw(profile: profiles.OverheadProfile, host: str) -> figures.Figure:
    """Draw each load as a mark; bursty ones are hollow."""
    lines = [
        ' · '.join(
            filter(
                None,
                (
                    host,
                    'profile %d of %s' % (profile.version, profile.source),
                    'Linux %s' % profile.kernel,
                    '%d CPUs' % profile.cpus,
                    'explains %.1f %%' % (100 * profile.r2),
                ),
            )
        )
    ]
    warnings = (
        [] if profile.good else ['A poor fit: these prices are not used.']
    )
    page = pages.Page(
        7, 4.6, "What the host's work for I/O costs", lines, warnings
    )
    axes = page.panel(0.8, 0.6, 5.9, 3.7)
    if not profile.points:
        page.figure.text(
            0.5,
            0.4,
            'This profile has no points to draw.',
            size=11,
            color=pages.GREY,
            ha='center',
        )
        return page.figure
    for experiment in dict.fromkeys(
        point.experiment for point in profile.points
    ):
        color = _COLORS.get(experiment, '#000000')
        for bursts in (False, True):
            mine = [
                point
                for point in profile.points
                if point.experiment == experiment
                and (point.burst > 1) == bursts
            ]
            axes.plot(
                [
                    _share_pct(point, point.direct_us + point.shared_us)
                    for point in mine
                ],
                [_share_pct(point, point.predicted_us) for point in mine],
                'o',
                color=color,
                markersize=5,
                markerfacecolor='none' if bursts else color,
                label=None if bursts else experiment,
            )
    most = max(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot([0, most], [0, most], color=pages.PALE, linestyle=':')
    axes.set_xlim(0, most)
    axes.set_ylim(0, most)
    axes.set_xlabel('measured, % of a CPU')
    axes.set_ylabel('by the prices, % of a CPU')
    axes.legend(fontsize=8, frameon=False)
    return page.figure


def _share_pct(point: profiles.OverheadPoint, used_us: int) -> float:
    return 100 * used_us / max(1, point.interval_us)

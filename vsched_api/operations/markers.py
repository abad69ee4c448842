# SPDX-License-Identifier: Apache-2.0

"""Markers: by what clients name the last one of a page that they have."""

from collections.abc import Callable
import typing as ty

from vsched_api.operations import errors

_Marker = ty.TypeVar('_Marker')
_Position = ty.TypeVar('_Position')


def position(
    marker: _Marker | None,
    find: Callable[[_Marker], _Position | None],
    unknown: str,
) -> _Position | None:
    """Return where in the order the marker is; None without a marker.

    :param find: returns the position of a marker; None when nothing has it.
    :param unknown: says so, such as 'no event has it'.
    :raises errors.Invalid: when nothing has the marker.
    """
    if marker is None:
        return None
    found = find(marker)
    if found is None:
        raise errors.Invalid('marker: ' + unknown)
    return found

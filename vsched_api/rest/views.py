# SPDX-License-Identifier: Apache-2.0

"""JSON objects as the schemas of answers describe them."""

from collections.abc import Mapping
import typing as ty

from vsched_api.rest import clock
from vsched_api.schemas import fields


class View:
    """Makes objects with the properties of a schema, in their order.

    :param schema: of a closed object; values of times are seconds since the
        epoch.
    """

    def __init__(self, schema: fields.Schema) -> None:
        self._properties = tuple(
            (name, one.get('format') == 'date-time')
            for name, one in schema['properties'].items()
        )

    def __call__(self, source: object, **more: ty.Any) -> dict[str, ty.Any]:
        """Return the object.

        :param source: has an attribute for each property that is not in
            ``more``.
        :param more: JSON types.
        """
        found: dict[str, ty.Any] = {}
        for name, is_time in self._properties:
            if name in more:
                found[name] = more[name]
                continue
            value = getattr(source, name)
            found[name] = clock.iso(value) if is_time else value
        return found


def picked(
    properties: Mapping[str, fields.Schema], source: object
) -> dict[str, ty.Any]:
    """Return attributes by the names of properties.

    :param source: None makes every value None.
    """
    return {
        name: None if source is None else getattr(source, name)
        for name in properties
    }

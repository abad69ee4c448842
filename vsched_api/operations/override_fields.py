# SPDX-License-Identifier: Apache-2.0

"""The fields of an override of a reservation, as requests give them."""

from collections.abc import Mapping
from decimal import Decimal
import typing as ty

from vsched_api.operations import errors
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import extra_specs
from vsched_lib.model import reservation as model

#: What a new reservation means by a field that it does not name; the same
#: as the defaults of the extra specs.
DEFAULTS: Mapping[str, ty.Any] = {
    'period_us': 20_000,
    'mode': model.Mode.CAPPED.value,
    'backend': None,
}

#: The fields of a reservation itself.
RESERVATION = ('runtime_us', 'period_us', 'mode', 'backend')


def reservation_of(fields: Mapping[str, ty.Any]) -> model.Reservation:
    """Return the reservation that the fields of :data:`RESERVATION` say.

    :param fields: may have others.
    :raises errors.Invalid: when no host could hold it.
    """
    try:
        return model.Reservation(
            **{name: fields[name] for name in RESERVATION}
        )
    except model.InvalidReservation as problem:
        raise errors.Invalid(
            str(problem), contract_errors.Code.RESERVATION_INVALID
        ) from None


def specs_of(
    fields: Mapping[str, ty.Any], before: Mapping[str, str] | None, vcpus: int
) -> dict[str, str]:
    """Return what an override sets besides the reservation, as text by key.

    :param fields: what a request says; None leaves a key to the flavor.
    :param before: what the override set until now.
    :raises errors.Invalid: when a value is not accepted, or contradicts
        another one.
    """
    found = dict(before or {})
    for key in extra_specs.OVERRIDABLE:
        if key not in fields:
            continue
        value = fields[key]
        if value is None:
            found.pop(key, None)
            continue
        if isinstance(value, bool):
            text = str(value).lower()
        elif isinstance(value, str):
            text = value
        else:
            text = format(Decimal(str(value)), 'f')
        try:
            extra_specs.TABLE[key].parse(text)
        except ValueError as problem:
            raise errors.Invalid('%s: %s' % (key, problem)) from None
        found[key] = text
    if 'min_vcpus' in found:
        if found.get('balloon') == extra_specs.Balloon.OFF:
            raise errors.Invalid(
                'min_vcpus: conflicts with balloon off; give null for one'
            )
        if int(found['min_vcpus']) > vcpus:
            raise errors.Invalid(
                'min_vcpus: the instance has %d vCPUs' % vcpus
            )
    return found

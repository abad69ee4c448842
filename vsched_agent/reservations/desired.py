# SPDX-License-Identifier: Apache-2.0

"""The desired reservation: from the instance's metadata or an override."""

import dataclasses

from vsched_agent.hypervisor import base
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages
from vsched_lib.contract import overriding
from vsched_lib.model import fit
from vsched_lib.model import reservation


@dataclasses.dataclass(frozen=True, slots=True)
class Desired:
    """The reservation an instance should have.

    :param reserved: per vCPU; None when it should have none, or when the
        request is invalid.
    :param source: metadata or override.
    :param generation: of the override, 0 for metadata.
    :param problem: why the request is invalid; the instance then keeps
        what it has.
    :param io_charging: how the host's work on its I/O is charged.
    :param ask: what its flavor requires of a host besides the reservation.
    :param request_id: of the operator's request, for metadata None.
    :param comm_aware: whether its periods may be divided.
    """

    reserved: reservation.Reservation | None
    source: messages.Source
    generation: int = 0
    problem: errors.VschedError | None = None
    io_charging: extra_specs.IoCharging = extra_specs.IoCharging.NONE
    ask: fit.Ask = fit.Ask(0)
    request_id: str | None = None
    comm_aware: bool = False


#: Of an instance whose reservation is an operator's alone.
DEFAULT = extra_specs.IoCharging(str(extra_specs.TABLE['io_charging'].default))
_COMM_AWARE = bool(extra_specs.TABLE['comm_aware'].default)
NOTHING = Desired(None, messages.Source.NONE)


def by_override(override: collector_replies.Override) -> Desired:
    """Return the reservation that an override requests."""
    try:
        reserved = reservation.Reservation(
            override.runtime_us,
            override.period_us,
            reservation.Mode(override.mode),
            reservation.Backend(override.backend)
            if override.backend
            else None,
        )
    except ValueError as problem:
        return Desired(
            None,
            messages.Source.OVERRIDE,
            override.generation,
            errors.VschedError(str(problem), errors.Code.RESERVATION_INVALID),
        )
    return Desired(
        reserved,
        messages.Source.OVERRIDE,
        override.generation,
        request_id=override.request_id,
    )


def by_metadata(domain: base.Domain) -> Desired:
    """Return the reservation that the instance's metadata request."""
    if domain.metadata_problem:
        return Desired(
            None,
            messages.Source.METADATA,
            problem=errors.VschedError(
                domain.metadata_problem, errors.Code.EXTRA_SPECS_INVALID
            ),
        )
    try:
        spec = extra_specs.parse(domain.extra_specs)
    except errors.InvalidExtraSpecs as problem:
        return Desired(None, messages.Source.METADATA, problem=problem)
    if spec.reservation is None:
        return NOTHING
    return Desired(
        spec.reservation,
        messages.Source.METADATA,
        io_charging=extra_specs.IoCharging(str(spec.values['io_charging'])),
        ask=dataclasses.replace(spec.ask(0), promise=None),
        comm_aware=bool(spec.values['comm_aware']),
    )


def of(
    domain: base.Domain, override: collector_replies.Override | None
) -> Desired:
    """Return what the override requests, without one the metadata."""
    if override is not None:
        desired = by_override(override)
        if desired.reserved is None:
            return desired
        # An override changes figures; the flavor's qualities stay.
        own = by_metadata(_merged(domain, override, desired.reserved))
        if override.specs and own.problem is not None:
            return dataclasses.replace(
                desired, reserved=None, problem=own.problem
            )
        return dataclasses.replace(
            desired,
            io_charging=own.io_charging if own.reserved else DEFAULT,
            ask=own.ask,
            comm_aware=own.comm_aware
            if own.reserved is not None
            else _COMM_AWARE,
        )
    return by_metadata(domain)


def effective(
    domain: base.Domain, override: collector_replies.Override | None
) -> base.Domain:
    """Return the instance with the extra specs that are in effect.

    :param override: whose specs replace the flavor's; None without one.
    """
    if override is None or not override.specs:
        return domain
    return dataclasses.replace(
        domain,
        extra_specs=overriding.effective(domain.extra_specs, override.specs),
    )


def _merged(
    domain: base.Domain,
    override: collector_replies.Override,
    reserved: reservation.Reservation,
) -> base.Domain:
    if not override.specs:
        return domain
    return dataclasses.replace(
        domain,
        extra_specs=overriding.merged(
            domain.extra_specs, reserved, override.specs
        ),
    )


def workload_class(domain: base.Domain) -> str | None:
    """Return the instance's workload class; None if it has no valid one."""
    spec = extra_specs.TABLE['workload_class']
    try:
        return str(spec.parse(domain.extra_specs.get(spec.name)))
    except ValueError:
        return None

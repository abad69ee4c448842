# SPDX-License-Identifier: Apache-2.0

"""Check reservations against the ranges of a host's backends.

Admission is up to the agent and its kernel. This check rejects only what no
host state could admit.
"""

from vsched_api.operations import errors
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import messages
from vsched_lib.model import reservation as model


def check(
    promise: model.Reservation, host: str, info: messages.HostInfo | None
) -> None:
    """Raise unless a backend of the host can express the reservation.

    :param info: None when the host has not reported it: then only the
        backend's own ranges are checked.
    :raises errors.Conflict: when the host cannot use the requested backend.
    :raises errors.Invalid: when a value is out of the backend's ranges.
    """
    if promise.backend is not None:
        if info is not None:
            _usable(promise.backend, host, info)
        problems = promise.problems(
            promise.backend, info.tick_us if info is not None else 0
        )
        if problems:
            raise _invalid(problems)
        return
    found: list[str] = []
    for backend in model.LIMITS:
        if info is not None and not _names_usable(backend, info):
            continue
        problems = promise.problems(
            backend, info.tick_us if info is not None else 0
        )
        if not problems:
            return
        found.extend(problems)
    if found:
        raise _invalid(found)


def _names_usable(backend: model.Backend, info: messages.HostInfo) -> bool:
    return any(one.name == backend and one.usable for one in info.backends)


def _usable(
    backend: model.Backend, host: str, info: messages.HostInfo
) -> None:
    for one in info.backends:
        if one.name == backend and not one.usable:
            raise errors.Conflict(
                'backend: host %s can not use %s: %s'
                % (host, backend, '; '.join(one.reasons) or 'no reason given'),
                contract_errors.Code.BACKEND_UNAVAILABLE,
            )
    if info.backends and all(one.name != backend for one in info.backends):
        raise errors.Conflict(
            'backend: host %s has %s, not %s'
            % (host, ', '.join(one.name for one in info.backends), backend),
            contract_errors.Code.BACKEND_UNAVAILABLE,
        )


def _invalid(problems: list[str]) -> errors.Invalid:
    # The model's messages start with the field's name, except those about the
    # backend as a whole.
    fields = ('runtime_us', 'period_us', 'mode')
    return errors.Invalid(
        '; '.join(
            text if text.startswith(fields) else 'backend: ' + text
            for text in problems
        ),
        contract_errors.Code.RESERVATION_INVALID,
    )

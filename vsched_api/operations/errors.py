# SPDX-License-Identifier: Apache-2.0

"""Errors of operations. An operation that raises one changes nothing.

VschedError
 +-- Invalid        the request has an invalid value
 +-- NotFound       the object of the request does not exist
 +-- Conflict       the object is in a state that does not allow the
 |                  request
 +-- Outdated       the request is not based on the newest generation
 +-- NotInstalled   this installation lacks a required component
 +-- Away           a required service does not respond
"""

from vsched_lib.contract import errors


class Invalid(errors.VschedError):
    """The request has an invalid value.

    The detail starts with the name of the field.
    """

    code = errors.Code.BAD_REQUEST


class NotFound(errors.VschedError):
    """The object of the request does not exist."""

    code = errors.Code.NOT_FOUND


class Conflict(errors.VschedError):
    """The object of the request is in a state that does not allow it."""

    code = errors.Code.RESERVATION_EXISTS


class Outdated(errors.VschedError):
    """The object was changed after the generation that the request names."""

    code = errors.Code.GENERATION_CONFLICT


class NotInstalled(errors.VschedError):
    """A required component is missing; the detail names it."""

    code = errors.Code.PLACEMENT_UNAVAILABLE


class Away(errors.VschedError):
    """A required service does not respond, or rejects the request."""

    code = errors.Code.PLACEMENT_UNAVAILABLE

# SPDX-License-Identifier: Apache-2.0

"""Why an operation was not done. Nothing was changed when one is raised.

VschedError
 +-- Invalid        the request asks for something that can not be
 +-- NotFound       what it names is not there
 +-- Conflict       what it names is in another state than it takes for
 |                  granted
 +-- Outdated       somebody else changed it since the request's author looked
 +-- NotInstalled   this installation lacks what it takes
 +-- Away           another service that it takes does not answer
"""

from vsched_lib.contract import errors


class Invalid(errors.VschedError):
    """The request asks for something that can not be.

    The detail starts with the name of the field.
    """

    code = errors.Code.BAD_REQUEST


class NotFound(errors.VschedError):
    """What the request names is not there."""

    code = errors.Code.NOT_FOUND


class Conflict(errors.VschedError):
    """What the request names is in another state than it assumes."""

    code = errors.Code.RESERVATION_EXISTS


class Outdated(errors.VschedError):
    """Somebody else changed what the request changes."""

    code = errors.Code.GENERATION_CONFLICT


class NotInstalled(errors.VschedError):
    """What it takes is not installed here; the detail says what is."""

    code = errors.Code.PLACEMENT_UNAVAILABLE


class Away(errors.VschedError):
    """Another service that it takes does not answer, or refuses."""

    code = errors.Code.PLACEMENT_UNAVAILABLE

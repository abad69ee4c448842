# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Why an operation was not done. Nothing was changed when one is raised.

VschedError
 +-- Invalid        the request asks for something that can not be
 +-- NotFound       what it names is not there
 +-- Conflict       what it names is in another state than it takes for
 |                  granted
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


class NotInstalled(errors.VschedError):
    """What it takes is not installed here; the detail says what is."""

    code = errors.Code.PLOTS_UNAVAILABLE


class Away(errors.VschedError):
    """Another service that it takes does not answer, or refuses."""

    code = errors.Code.PLACEMENT_UNAVAILABLE

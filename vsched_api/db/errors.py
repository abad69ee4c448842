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

"""What can go wrong between us and the database.

VschedError
 +-- DatabaseUnavailable    it is away, busy or not the one expected
"""

from vsched_lib.contract import errors


class DatabaseUnavailable(errors.VschedError):
    """The database can not serve now; the same may succeed later.

    The detail never quotes a statement, an address or a password.
    """

    code = errors.Code.DATABASE_UNAVAILABLE


class UnstorableValue(ValueError):
    """A value that the database has no way to hold."""


class UnusableConnection(ValueError):
    """An option that should name a database and does not.

    The text does not quote it: it may hold a password.
    """

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

"""Whether the service can do its work."""

from vsched_api.db.queries import counters
from vsched_api.db import session as db


def check(database: db.Database) -> None:
    """Go on only if the database answers and has our tables.

    :raises vsched_api.db.errors.DatabaseUnavailable: when not, and why.
    """
    database.read(counters.override_generation)

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

"""Numbers handed out once each."""

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models

_OVERRIDE_GENERATION = 'override_generation'


def next_override_generation(session: orm.Session) -> int:
    """Take the next number, and hold the counter until the end.

    The first statement of every transaction that changes an override or
    which hosts list an instance: one of the two then always sees what the
    other did, and no host misses an override.
    """
    row = models.Counter
    session.execute(
        sa.update(row).where(row.name == _OVERRIDE_GENERATION).values(
            value=row.value + 1).execution_options(
                synchronize_session=False))
    return session.execute(
        sa.select(row.value).where(row.name == _OVERRIDE_GENERATION)
    ).scalar_one()


def override_generation(session: orm.Session) -> int:
    """The number taken last."""
    row = models.Counter
    return session.execute(
        sa.select(row.value).where(row.name == _OVERRIDE_GENERATION)
    ).scalar_one()

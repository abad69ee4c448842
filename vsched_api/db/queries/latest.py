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

"""Reports of which an instance has one, the latest."""

from collections.abc import Mapping
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm


def put(session: orm.Session, table: ty.Any,
        reports: Mapping[int, Mapping[str, ty.Any]]) -> None:
    """Store reports over older ones.

    :param table: a model whose key is ``instance_id``.
    :param reports: by the id of their instance's row.
    """
    rows = {row.instance_id: row for row in session.execute(
        sa.select(table).where(table.instance_id.in_(reports))).scalars()}
    added = []
    for instance_id, values in reports.items():
        row = rows.get(instance_id)
        if row is None:
            added.append({'instance_id': instance_id, **values})
        else:
            for name, value in values.items():
                if getattr(row, name) != value:
                    setattr(row, name, value)
    if added:
        session.execute(sa.insert(table), added)
    session.flush()

# SPDX-License-Identifier: Apache-2.0

"""Which keys of hosts are accepted on the bus."""

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db.models import base


class HostKey(base.Base):
    """The keys that were issued to a host; not the keys themselves.

    A host needs one before its first report, and what was revoked must stay
    so when the host is deleted. So no row of ``hosts`` goes with it.
    ``serial`` is the newest one, ``lowest_serial`` the oldest that is
    accepted, and ``rotated_at`` when the newest was issued.
    """

    __tablename__ = 'host_keys'

    host: orm.Mapped[str] = orm.mapped_column(
        sa.String(base.NAME_CHARS), primary_key=True
    )
    serial: orm.Mapped[int]
    lowest_serial: orm.Mapped[int]
    rotated_at: orm.Mapped[float]

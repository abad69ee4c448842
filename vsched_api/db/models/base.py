# SPDX-License-Identifier: Apache-2.0

"""What all tables stand on."""

import typing as ty

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy import orm

# SQLite numbers the rows of a column by itself only when its type is
# INTEGER, which is 64 bits wide there.
Id = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
# MariaDB's TEXT holds 64 KiB.
LongText = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')

#: Longest name of a host, an instance, a code.
NAME_CHARS = 255
UUID_CHARS = 36
WORD_CHARS = 64


class Base(orm.DeclarativeBase):
    """Base of all tables."""

    # Names and UUIDs compare byte by byte, as on the other databases.
    __table_args__: ty.Any = {
        'mysql_engine': 'InnoDB',
        'mysql_charset': 'utf8mb4',
        'mysql_collate': 'utf8mb4_bin',
    }
    type_annotation_map: ty.ClassVar[dict[ty.Any, ty.Any]] = {
        int: sa.BigInteger(),
        float: sa.Double(),
        bool: sa.Boolean(),
        dict[str, ty.Any]: sa.JSON(none_as_null=True),
        list[ty.Any]: sa.JSON(none_as_null=True),
    }


class Authored:
    """Who set a row last; None where that is not known."""

    user_id: orm.Mapped[str | None] = orm.mapped_column(sa.String(NAME_CHARS))
    project_id: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(NAME_CHARS)
    )
    request_id: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(WORD_CHARS)
    )


def with_options(*extras: ty.Any) -> tuple[ty.Any, ...]:
    """The arguments of a table: these, and those of all tables."""
    return (*extras, Base.__table_args__)

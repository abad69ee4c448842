# SPDX-License-Identifier: Apache-2.0

"""What can go wrong between us and the database.

VschedError
 +-- DatabaseUnavailable    it is away, busy or not the one expected
      +-- DatabaseBusy      a statement or a lock took too long
      +-- UnknownTables     its tables are not those of a release we know
"""

from vsched_lib.contract import errors


class DatabaseUnavailable(errors.VschedError):
    """The database can not serve now; the same may succeed later.

    The detail never quotes a statement, an address or a password.
    """

    code = errors.Code.DATABASE_UNAVAILABLE


class DatabaseBusy(DatabaseUnavailable):
    """A statement took too long, or waited too long for a lock."""


class UnknownTables(DatabaseUnavailable):
    """The tables are not those of a revision of this release."""


class UnstorableValue(ValueError):
    """A value that the database has no way to hold."""


class UnusableConnection(ValueError):
    """An option that should name a database and does not.

    The text does not quote it: it may hold a password.
    """

# SPDX-License-Identifier: Apache-2.0

"""What benchmarks of a fleet in a database share: its servers and its size."""

from collections.abc import Iterator
import contextlib
import typing as ty
import unittest

from benchmarks import frame
from vsched_api.tests import databases

#: Servers of databases that operators use, one after the other.
SERVERS: tuple[ty.Any, ...] = (databases.PostgreSQL, databases.MariaDB)

#: Hosts of the fleet that the page, the metrics and the commands have to
#: show, and reservations of each: 5 000 in all.
HOSTS = 1_000
RESERVATIONS = 5


@contextlib.contextmanager
def database(kind: ty.Any) -> Iterator[str]:
    """An empty database of its own, while no other benchmark runs.

    :param kind: one of :data:`SERVERS`.
    :returns: its URL.
    :raises frame.Unavailable: without the server.
    """
    test = unittest.TestCase()
    try:
        try:
            url = kind.make(test)
        except unittest.SkipTest as error:
            raise frame.Unavailable(str(error)) from error
        with frame.alone():
            yield url
    finally:
        test.doCleanups()

# SPDX-License-Identifier: Apache-2.0

"""What benchmarks of a fleet in a database share: its servers and its size."""

import typing as ty

from vsched_api.tests import databases

#: Servers of databases that operators use, one after the other.
SERVERS: tuple[ty.Any, ...] = (databases.PostgreSQL, databases.MariaDB)

#: Hosts of the fleet that the page, the metrics and the commands have to
#: show, and reservations of each: 5 000 in all.
HOSTS = 1_000
RESERVATIONS = 5

# SPDX-License-Identifier: Apache-2.0

"""What the parts of the benchmark ``fleet`` use, minute by minute."""

from collections.abc import Mapping
import contextlib
import pathlib
import time

import sqlalchemy as sa

from benchmarks import process_family

_PRESSURE = pathlib.Path('/proc/pressure')
_RESOURCES = ('cpu', 'io')
_MIB = 1 << 20
# The log that PostgreSQL has written, and what its checkpoints have; both in
# bytes. Whole pages are logged after a checkpoint has begun.
_WRITTEN = sa.text(
    "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0'), "
    "buffers_checkpoint * current_setting('block_size')::bigint "
    'FROM pg_stat_bgwriter'
)


class Meter:
    """Reads CPU time and pressure whenever it is asked to.

    :param parts: by name, processes; their descendants count with them.
    :param connection: of a PostgreSQL server.
    :ivar minutes: by figure, a value for each reading: CPUs by part, the
        percentage of the time in which some task waited for a resource, and
        what the database has written, in MiB.
    """

    def __init__(
        self, parts: Mapping[str, tuple[int, ...]], connection: str
    ) -> None:
        self._parts = parts
        self._engine = sa.create_engine(connection, poolclass=sa.NullPool)
        self._at_s = time.monotonic()
        self._cpu_s = self._read_cpu()
        self._waited_us = _pressure()
        self._written = self._read_written()
        self.minutes: dict[str, list[float]] = {
            **{name + '_cpus': [] for name in parts},
            **{name + '_pressure_pct': [] for name in self._waited_us},
            **{name + '_mib': [] for name in self._written},
        }

    def read(self) -> None:
        """Add a value to each figure, since the reading before."""
        at_s, cpu_s, waited_us = (
            time.monotonic(),
            self._read_cpu(),
            _pressure(),
        )
        written = self._read_written()
        took_s = at_s - self._at_s
        for name, value in cpu_s.items():
            self.minutes[name + '_cpus'].append(
                round((value - self._cpu_s[name]) / took_s, 3)
            )
        for name, value in waited_us.items():
            self.minutes[name + '_pressure_pct'].append(
                round((value - self._waited_us[name]) / took_s / 1e4, 1)
            )
        for name, size in written.items():
            self.minutes[name + '_mib'].append(
                round((size - self._written[name]) / _MIB, 1)
            )
        self._at_s, self._cpu_s, self._waited_us = at_s, cpu_s, waited_us
        self._written = written

    def _read_cpu(self) -> dict[str, float]:
        return {
            name: sum(
                process_family.use(
                    (pid, *process_family.descendants(pid))
                ).cpu_s
                for pid in pids
            )
            for name, pids in self._parts.items()
        }

    def _read_written(self) -> dict[str, int]:
        with self._engine.connect() as connection:
            log, checkpoints = connection.execute(_WRITTEN).one()
        return {'log': int(log), 'checkpoint': int(checkpoints)}


def _pressure() -> dict[str, int]:
    """Return for how long some task waited, in µs, by resource."""
    found = {}
    for name in _RESOURCES:
        # A kernel without pressure stall information has no such files.
        with contextlib.suppress(OSError):
            some = (_PRESSURE / name).read_text().splitlines()[0]
            found[name] = int(some.rpartition('total=')[2])
    return found

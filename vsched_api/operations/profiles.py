# SPDX-License-Identifier: Apache-2.0

"""Error profiles and overhead profiles of hosts: order and read them."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing as ty

from vsched_api.db import models
from vsched_api.db.queries import hosts
from vsched_api.db.queries import profiles as queries
from vsched_api.db import session as db
from vsched_api.operations import announcements
from vsched_api.operations import errors
from vsched_api.operations import jobs
from vsched_api.operations import markers
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import messages
from vsched_lib.contract import profiles
from vsched_lib.contract import wire
from vsched_lib.model import error
from vsched_lib.presentation import error_csv
from vsched_lib.presentation import overhead_csv

Code = contract_errors.Code


def measure(
    database: db.Database,
    announcer: announcements.Announcer,
    host: str,
    parameters: Mapping[str, ty.Any],
    now: float,
) -> jobs.Job:
    """Create a job that measures a host's error profile.

    :param parameters: as in the schema.
    :raises errors.Invalid: when the parameters contradict each other.
    :raises errors.NotFound: when no agent ever reported from the host.
    :raises errors.Conflict: when such a job is unfinished.
    """
    if parameters.get('quick') and 'seconds' in parameters:
        raise errors.Invalid(
            'seconds: a quick run has a length of its own; leave out '
            'seconds or quick'
        )
    _check_length(parameters)
    return jobs.create(
        database,
        announcer,
        host,
        messages.JobKind.PROFILE_ERROR,
        {
            name: _whole(value) if name in _WHOLE else value
            for name, value in parameters.items()
        },
        now,
    )


#: The longest run that may be ordered, in seconds.
MAX_RUN_S = 86_400


def _check_length(parameters: Mapping[str, ty.Any]) -> None:
    """Raise unless a run takes :data:`MAX_RUN_S` at most.

    :raises errors.Invalid: when its points, measured one after the other, take
        longer.
    """
    points = len(parameters.get('backends', ('deadline',)))
    points *= len(parameters.get('periods_us', (0,)))
    points *= len(parameters.get('shares_pct', error.PAPER_SHARES_PPM))
    if parameters.get('contend', 1):
        # Each point is measured without hogs and beside them.
        points *= 2
    windows = parameters.get('seconds', error.LONG_WINDOWS)
    if points * (windows + 1) > MAX_RUN_S:
        raise errors.Invalid(
            'seconds: %d points of %d s take longer than a day; name fewer '
            'shares_pct, periods_us or backends, or less seconds'
            % (points, windows)
        )


_WHOLE = ('periods_us', 'seconds', 'contend')


def _whole(value: ty.Any) -> ty.Any:
    # In JSON, 5.0 is an integer too.
    return list(map(int, value)) if isinstance(value, list) else int(value)


def measure_overhead(
    database: db.Database,
    announcer: announcements.Announcer,
    host: str,
    parameters: Mapping[str, ty.Any],
    now: float,
) -> jobs.Job:
    """Create a job that measures the overhead of a host's I/O.

    :param parameters: as in the schema.
    :raises errors.NotFound: when no agent ever reported from the host.
    :raises errors.Conflict: when such a job is unfinished.
    """
    return jobs.create(
        database,
        announcer,
        host,
        messages.JobKind.PROFILE_OVERHEAD,
        dict(parameters),
        now,
    )


def newest(
    database: db.Database,
    host: str,
    source: str | None = None,
    version: int | None = None,
) -> list[profiles.ErrorProfile]:
    """Return the newest error profile of each source.

    :param source: return the profile of this source only.
    :param version: return this version instead of the newest.
    :raises errors.NotFound: when no agent ever reported from the host, or when
        the version is not stored.
    """

    def work(session: ty.Any) -> list[profiles.ErrorProfile]:
        rows = _newest(session, models.ErrorProfile, host, source, version)
        points = queries.points(session, [row.id for row in rows])
        return [from_row(row, points[row.id]) for row in rows]

    return database.read(work)


def newest_overhead(
    database: db.Database,
    host: str,
    source: str | None = None,
    version: int | None = None,
) -> list[profiles.OverheadProfile]:
    """Return the newest overhead profile of each source, as :func:`newest`."""
    return database.read(
        lambda session: [
            _overhead(row)
            for row in _newest(
                session, models.OverheadProfile, host, source, version
            )
        ]
    )


def _newest(
    session: ty.Any,
    kind: type[queries.Kind],
    host: str,
    source: str | None,
    version: int | None,
) -> Sequence[queries.Kind]:
    rows = queries.newest(
        session, kind, _host_id(session, host), source, version
    )
    if version is not None and not rows:
        raise _none(kind, host, source, version)
    return rows


def page(
    database: db.Database,
    host: str,
    limit: int,
    marker: str | None = None,
    source: str | None = None,
) -> list[profiles.ErrorProfile]:
    """Return the stored error profiles of a host, newest first.

    :param marker: UUID of the last profile of the previous page.
    :returns: profiles without their points.
    :raises errors.NotFound: when no agent ever reported from the host.
    :raises errors.Invalid: when the marker is not one of its profiles.
    """
    return database.read(
        lambda session: [
            from_row(row)
            for row in _page(
                session, models.ErrorProfile, host, limit, marker, source
            )
        ]
    )


def page_overhead(
    database: db.Database,
    host: str,
    limit: int,
    marker: str | None = None,
    source: str | None = None,
) -> list[profiles.OverheadProfile]:
    """Return the stored overhead profiles of a host; see :func:`page`."""
    return database.read(
        lambda session: [
            dataclasses.replace(_overhead(row), points=())
            for row in _page(
                session, models.OverheadProfile, host, limit, marker, source
            )
        ]
    )


def _page(
    session: ty.Any,
    kind: type[queries.Kind],
    host: str,
    limit: int,
    marker: str | None,
    source: str | None,
) -> Sequence[queries.Kind]:
    host_id = _host_id(session, host)
    after = markers.position(
        marker,
        lambda uuid: queries.position(session, kind, host_id, uuid),
        'no profile of the host has it',
    )
    return queries.page(session, kind, host_id, limit, after, source)


def csv(
    database: db.Database, host: str, source: str, version: int | None = None
) -> str:
    """Return the newest error profile of a source as CSV, one row a point.

    :raises errors.NotFound: when there is no such profile or host.
    """
    return error_csv.render(_one(database, host, source, version))


def overhead_table(
    database: db.Database, host: str, source: str, version: int | None = None
) -> str:
    """Return the newest overhead profile of a source as CSV.

    :raises errors.NotFound: when there is no such profile or host.
    """
    found = newest_overhead(database, host, source, version)
    if not found:
        raise _none(models.OverheadProfile, host, source, version)
    return overhead_csv.render(found[0])


def _one(
    database: db.Database, host: str, source: str, version: int | None
) -> profiles.ErrorProfile:
    found = newest(database, host, source, version)
    if not found:
        raise _none(models.ErrorProfile, host, source, version)
    return found[0]


def _host_id(session: ty.Any, host: str) -> int:
    row = hosts.by_name(session, host)
    if row is None:
        raise errors.NotFound(
            'no agent reported from a host named %s' % host,
            Code.HOST_NOT_FOUND,
        )
    return row.id


def _none(
    kind: type[models.Base], host: str, source: str | None, version: int | None
) -> errors.NotFound:
    return errors.NotFound(
        'host %s has no %s profile%s%s'
        % (
            host,
            'error' if kind is models.ErrorProfile else 'overhead',
            '' if source is None else ' of source %s' % source,
            '' if version is None else ' of version %d' % version,
        ),
        Code.PROFILE_NOT_FOUND,
    )


def from_row(
    row: models.ErrorProfile, points: Sequence[models.ErrorPoint] = ()
) -> profiles.ErrorProfile:
    """Convert a row to a profile; without points if none are given."""
    return profiles.ErrorProfile.from_dict(
        {
            **_values(profiles.ErrorProfile, row, 'points'),
            'points': [
                _values(profiles.ErrorPoint, point) for point in points
            ],
        }
    )


def _overhead(row: models.OverheadProfile) -> profiles.OverheadProfile:
    return profiles.OverheadProfile.from_dict(
        _values(profiles.OverheadProfile, row)
    )


def _values(
    kind: type[wire.Message], row: models.Base, *but: str
) -> dict[str, ty.Any]:
    return {
        field.name: getattr(row, field.name)
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]
        if field.name not in but
    }

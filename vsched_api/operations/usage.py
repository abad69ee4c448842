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

"""How much CPU time instances got."""

import dataclasses
from fractions import Fraction
import typing as ty

from vsched_api.db.queries import usage as queries
from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_lib.model import reservation as model


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """CPU time of one instance in one interval; durations in µs.

    :param at: end of the interval, in seconds since the epoch.
    """

    number: int
    at: float
    host: str
    instance_uuid: str
    interval_us: int
    guest_us: int
    wait_us: int
    promised_us: int | None

    @property
    def guest_mcpu(self) -> int | None:
        """What the vCPUs used, in milli-CPU; None in an empty interval."""
        return _mcpu(self.guest_us, self.interval_us)

    @property
    def promised_mcpu(self) -> int | None:
        """What was promised, in milli-CPU; None without a reservation."""
        return _mcpu(self.promised_us, self.interval_us)

    @property
    def error_ppm(self) -> int | None:
        """(got − promised)/promised: above 0 when it got more.

        An idle instance is far below 0 without any promise being broken.
        """
        if not self.promised_us:
            return None
        return round(Fraction(
            self.guest_us - self.promised_us, self.promised_us) * 1_000_000)


def page(database: db.Database, limit: int, marker: int | None = None,
         newest_first: bool = False, **filters: ty.Any) -> list[Sample]:
    """Samples in the order of time.

    :param marker: number of the last sample of the page before.
    :param filters: as :func:`vsched_api.db.queries.usage.page` takes them.
    :raises errors.Invalid: when the marker is not a stored sample.
    """
    def work(session: ty.Any) -> list[Sample]:
        after = None
        if marker is not None:
            after = queries.position(session, marker)
            if after is None:
                raise errors.Invalid('marker: no sample has it')
        return [_sample(found) for found in queries.page(
            session, limit, after, newest_first, **filters)]

    return database.read(work)


def _mcpu(used_us: int | None, interval_us: int) -> int | None:
    if used_us is None or interval_us < 1:
        return None
    return round(Fraction(used_us * model.MCPU_PER_CPU, interval_us))


def _sample(found: queries.Found) -> Sample:
    row = found.sample
    return Sample(
        number=row.id, at=row.at, host=found.host,
        instance_uuid=row.instance_uuid, interval_us=row.interval_us,
        guest_us=row.guest_us, wait_us=row.wait_us,
        promised_us=row.promised_us)

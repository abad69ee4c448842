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

"""Error profiles for tests."""

import uuid as uuids

from vsched_lib.contract import messages
from vsched_lib.model import error

FACTS = {'kernel': '6.18.0', 'tick_us': 4000, 'cpus': 2, 'features': {}}


def point(samples, backend='deadline', share_pct=10, contenders=4,
          period_us=10_000, probe=messages.Probe.THREAD):
    """A point with these samples, in ppm."""
    return messages.ErrorPoint.of(
        error.statistics(samples), backend=backend, period_us=period_us,
        share_ppm=share_pct * 10_000, contenders=contenders, probe=probe,
        window_us=error.WINDOW_US)


def profile(*points, version=1, source=messages.ProfileSource.BENCHMARK):
    """A profile of these points."""
    return messages.ErrorProfile(
        uuid=str(uuids.uuid4()), version=version, source=source,
        started_at=1.0, finished_at=2.0, load=0.0, quick=False,
        complete=True, points=points, **FACTS)

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

from vsched_lib.tests import error_profiles

FACTS = {'kernel': '6.18.0', 'tick_us': 4000, 'cpus': 2, 'features': {}}


def point(samples, backend='deadline', share_pct=10, contenders=4, **where):
    """A point with these samples, in ppm."""
    return error_profiles.point(
        samples, backend=backend, share_ppm=share_pct * 10_000,
        contenders=contenders, **where)


def profile(*points, **changes):
    """A profile of these points, each a new one."""
    return error_profiles.profile(points, **{
        'uuid': str(uuids.uuid4()), 'version': 1, **FACTS, **changes})

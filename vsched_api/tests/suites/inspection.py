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

"""Whatever passes inspection can be stored."""

import hypothesis
from hypothesis import strategies as st

from vsched_api.db.queries import hosts
from vsched_api.operations import reports
from vsched_api.operations import storable
from vsched_api.tests import base
from vsched_lib.contract import balloons
from vsched_lib.contract import messages
from vsched_lib.contract import profiles
from vsched_lib.contract import wire

_NUMBERS = st.integers(-2**80, 2**80) | st.integers(0, 2000)
_TIMES = st.floats() | st.floats(0, base.NOW)
_TEXTS = st.text(st.characters(), max_size=400)
_UUIDS = st.uuids().map(str)
_FIGURES = st.dictionaries(
    _TEXTS, st.recursive(
        st.none() | st.booleans() | _NUMBERS | st.floats() | _TEXTS,
        lambda inner: st.lists(inner, max_size=3), max_leaves=5),
    max_size=3)

_LISTS = st.lists(_NUMBERS, max_size=3)

_REPORTS = st.builds(
    messages.Report,
    host=st.just('node1') | _TEXTS, batch=_NUMBERS, at=_TIMES,
    host_info=st.none() | st.builds(
        messages.HostInfo, _TEXTS, _TEXTS, _TEXTS, _TEXTS, _NUMBERS,
        _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS),
    instances=st.none() | st.lists(st.builds(
        messages.InstanceInfo, _UUIDS, _TEXTS, _NUMBERS), max_size=3),
    reservations=st.lists(st.builds(
        messages.ReservationReport, _UUIDS,
        st.sampled_from(messages.Source), st.sampled_from(messages.State),
        _NUMBERS, _TIMES, _NUMBERS, st.none() | _NUMBERS, code=_TEXTS,
        detail=_TEXTS, figures=_FIGURES), max_size=3),
    usage=st.lists(st.builds(
        messages.UsageSample, _UUIDS, _TIMES, _NUMBERS, _NUMBERS, _NUMBERS,
        st.none() | _NUMBERS, *[_NUMBERS] * 8), max_size=3),
    host_usage=st.lists(st.builds(
        messages.HostUsage, _TIMES, *[_NUMBERS] * 9), max_size=2),
    events=st.lists(st.builds(
        messages.Event, _UUIDS, _TIMES, _TEXTS,
        st.sampled_from(messages.Severity), _TEXTS, st.none() | _UUIDS,
        _FIGURES), max_size=3),
    jobs=st.lists(st.builds(
        messages.JobReport, _UUIDS | _TEXTS, _NUMBERS,
        st.sampled_from(messages.JobState), _NUMBERS, _TIMES, _TEXTS),
        max_size=3),
    error_profiles=st.lists(st.builds(
        profiles.ErrorProfile, _UUIDS, _NUMBERS,
        st.sampled_from(profiles.ProfileSource), _TIMES, _TIMES, _TEXTS,
        _NUMBERS, _NUMBERS, _TIMES, st.booleans(), st.booleans(),
        st.lists(st.builds(
            profiles.ErrorPoint, _TEXTS, _NUMBERS, _NUMBERS, _NUMBERS,
            st.sampled_from(profiles.Probe), *[_NUMBERS] * 5, _LISTS,
            *[_NUMBERS] * 4, _LISTS, _LISTS, _LISTS), max_size=2),
        features=_FIGURES, notes=st.lists(_TEXTS, max_size=2)), max_size=2),
    balloons=st.lists(st.builds(
        balloons.BalloonReport, _UUIDS | _TEXTS,
        st.sampled_from(balloons.BalloonState), st.booleans(),
        *[_NUMBERS] * 4, _TIMES, st.booleans(), st.booleans(),
        st.none() | st.booleans(), _LISTS, st.none() | _TEXTS,
        st.none() | _TIMES, _NUMBERS, _NUMBERS,
        st.none() | st.sampled_from(balloons.OrderState),
        st.none() | _TEXTS, st.none() | _TEXTS), max_size=2),
    all_balloons=st.booleans(),
    balloon_changes=st.lists(st.builds(
        balloons.BalloonChange, _UUIDS | _TEXTS, _UUIDS, _TIMES,
        *[_NUMBERS] * 3, _TEXTS, st.booleans(), st.none() | _TIMES,
        st.none() | _NUMBERS, st.none() | st.sampled_from(balloons.Outcome),
        st.none() | _TEXTS), max_size=2))


class Inspection:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def test_no_report_holds_up_the_next(self):
        @hypothesis.settings(
            max_examples=200, deadline=None, database=None,
            derandomize=True)
        @hypothesis.given(_REPORTS)
        def check(report):
            try:
                storable.host_name(report.host)
                reply = reports.store(self.database, report, base.NOW)
            except wire.MalformedMessage:
                # Whose batch it is, or which, can not be told.
                return
            row = self.database.read(
                lambda session: hosts.by_name(session, report.host))
            self.assertGreaterEqual(row.last_batch, report.batch)
            self.assertEqual(
                (reply.overrides_generation, reply.jobs_generation),
                (row.overrides_generation, row.jobs_generation))

        check()

# SPDX-License-Identifier: Apache-2.0

"""Whatever the bus brings is stored or refused, and holds nothing up."""

import json
import time

import hypothesis
from hypothesis import strategies as st

from vsched_api.db.queries import hosts
from vsched_api.tests import base
from vsched_lib.contract import messages
from vsched_lib.contract import wire
from vsched_lib.tests import message_strategies

_REPORTS = message_strategies.nearly(messages.Report)
_VALID = message_strategies.valid(messages.Report)
_SETTINGS = hypothesis.settings(
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)

#: No message may take this long, in seconds; many times what any takes.
_LONGEST_S = 10.0


class Inspection:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def stored(self, raw):
        """Send what is no more than JSON.

        :returns: whether it was answered, as what is stored is.
        """
        began = time.monotonic()
        try:
            # As the bus brings it: its JSON knows what Python's does.
            reply = self._collector.report({}, json.loads(json.dumps(raw)))
        except wire.MalformedMessage:
            return False
        finally:
            self.assertLess(time.monotonic() - began, _LONGEST_S)
        messages.ReportReply.from_dict(reply)
        return True

    def last_batch(self, host):
        """The number of the last batch that is stored of a host."""
        row = self.database.read(lambda session: hosts.by_name(session, host))
        return None if row is None else row.last_batch

    def test_any_json_is_stored_or_refused(self):
        self._collector = self.collector()

        @hypothesis.settings(_SETTINGS, max_examples=20)
        @hypothesis.given(message_strategies.ANYTHING | _REPORTS)
        def check(raw):
            self.stored(raw)

        check()

    def test_no_report_holds_up_the_next(self):
        self._collector = self.collector()
        numbers = iter(range(1, 10**6))

        @hypothesis.settings(_SETTINGS, max_examples=25)
        @hypothesis.given(_REPORTS | _VALID)
        def check(raw):
            raw.update(
                host=base.HOST, batch=next(numbers), epoch=None, after=None
            )
            self.assertTrue(self.stored(raw), raw)
            self.assertEqual(raw['batch'], self.last_batch(base.HOST))
            # Nor is anybody else kept from being answered.
            self.assertTrue(
                self.stored(
                    {'host': 'other', 'batch': raw['batch'], 'at': base.NOW}
                )
            )

        check()

    def test_whatever_is_within_the_bounds_is_stored(self):
        self._collector = self.collector()
        numbers = iter(range(1, 10**6))

        @hypothesis.settings(_SETTINGS, max_examples=20)
        @hypothesis.given(_VALID, st.booleans())
        def check(raw, all_balloons):
            raw.update(
                host=base.HOST,
                batch=next(numbers),
                epoch=None,
                after=None,
                all_balloons=all_balloons,
            )
            self.assertTrue(self.stored(raw))

        check()
        rejected = self.client().get('/v1/events?limit=1000').json['events']
        self.assertEqual(
            [],
            [
                one
                for one in rejected
                if one['code'] == 'vsched.report.rejected'
            ],
        )

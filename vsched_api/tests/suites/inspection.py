# SPDX-License-Identifier: Apache-2.0

"""Whatever the bus brings is stored or refused, and holds nothing up."""

import json
import time

import hypothesis
from hypothesis import strategies as st

from vsched_api.db.queries import hosts
from vsched_api.operations import rollups
from vsched_api.operations import slowdowns
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_lib.contract import collector_replies
from vsched_lib.contract import messages
from vsched_lib.contract import snapshot
from vsched_lib.contract import wire
from vsched_lib.tests import message_strategies

_REPORTS = message_strategies.nearly(messages.Report)
_VALID = message_strategies.valid(messages.Report)
#: No message may take this long, in seconds; many times what any takes, on a
#: busy machine as well.
_LONGEST_S = 60.0

#: What shows something of hosts, or of one of them.
_PATHS = (
    '/metrics',
    '/v1/balloons',
    '/v1/balloons/history',
    '/v1/events',
    '/v1/hosts',
    '/v1/hosts/' + base.HOST,
    '/v1/instances',
    '/v1/jobs',
    '/v1/reservations',
    '/v1/snapshot',
    '/v1/usage/totals',
    *(
        '/v1/hosts/%s/profiles/%s%s' % (base.HOST, kind, more)
        for kind in ('error', 'overhead')
        for more in ('', '?format=csv', '?source=live', '/versions')
    ),
    *(
        '/v1/usage?of=%s&resolution=%s%s' % (subject, resolution, more)
        for subject in usage.Subject
        for resolution in usage.Resolution
        for more in ('', '&format=csv')
    ),
)
_ASKED = {
    'vcpus': 2,
    'extra_specs': {
        'vsched:cpu_runtime_us': '5000',
        'vsched:max_alloc_error_pct': '5',
        'vsched:io_charging': 'overprovision',
        'vsched:net_rx_pps': '1000',
        'vsched:disk_write_iops': '100',
        'vsched:workload_class': 'web',
    },
}


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
        collector_replies.ReportReply.from_dict(reply)
        return True

    def last_batch(self, host):
        """The number of the last batch that is stored of a host."""
        row = self.database.read(lambda session: hosts.by_name(session, host))
        return None if row is None else row.last_batch

    def test_any_json_is_stored_or_refused(self):
        self._collector = self.collector()

        @message_strategies.bounded(20)
        @hypothesis.given(message_strategies.ANYTHING | _REPORTS)
        def check(raw):
            self.stored(raw)

        check()

    def test_no_report_holds_up_the_next(self):
        self._collector = self.collector()
        numbers = iter(range(1, 10**6))

        @message_strategies.bounded(25)
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

        @message_strategies.bounded(20)
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

    def test_whatever_is_stored_can_be_shown(self):
        """Of a host that reports extremes, and of the others beside it."""
        self._collector = self.collector()
        self.agent('other').first(*base.uuids(1))
        http = self.client()
        numbers = iter(range(1, 10**6))

        @message_strategies.bounded(12)
        @hypothesis.given(_VALID)
        def check(raw):
            raw.update(
                host=base.HOST, batch=next(numbers), epoch=None, after=None
            )
            self.assertTrue(self.stored(raw))
            rollups.fold(self.database, 1000)
            slowdowns.learn(self.database, self.now + 300, 60)
            for path in _PATHS:
                answer = http.get(path)
                self.assertIn(
                    answer.status_code, (200, 404), (path, answer.text[:500])
                )
            told = snapshot.Snapshot.from_dict(http.get(snapshot.PATH).json)
            self.assertIn('other', {one.name for one in told.hosts})
            answer = http.post('/v1/evaluations', json=_ASKED)
            self.assertEqual(200, answer.status_code, answer.text[:500])
            self.assertIn(
                'other',
                {one['host'] for one in answer.json['evaluation']['hosts']},
            )

        check()

# SPDX-License-Identifier: Apache-2.0

"""Every field of every message has a bound, and keeps it."""

import dataclasses
import json
import typing as ty

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.contract import bounds
from vsched_lib.contract import messages
from vsched_lib.contract import profiles
from vsched_lib.contract import snapshot
from vsched_lib.contract import wire
from vsched_lib.tests import message_strategies

UUID = '1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b4f'


def kinds(base_kind=wire.Message):
    """All messages there are, whatever module declares them."""
    found = set()
    for kind in base_kind.__subclasses__():
        found |= {kind} if dataclasses.is_dataclass(kind) else set()
        found |= kinds(kind)
    # A dataclass with slots is made twice.
    return {kind for kind in found if '__slots__' in vars(kind)}


KINDS = sorted(kinds(), key=lambda one: (one.__module__, one.__name__))


class DeclaredBoundsTestCase(base.BaseTestCase):
    def test_whatever_is_within_is_read(self):
        for kind in KINDS:
            with self.subTest(kind.__name__):
                self.accepts(kind)

    def accepts(self, kind):
        @message_strategies.bounded(15)
        @hypothesis.given(message_strategies.valid(kind))
        def check(raw):
            found = kind.from_dict(raw)
            again = kind.from_dict(
                json.loads(json.dumps(found.to_dict(), allow_nan=False))
            )
            self.assertEqual(found, again)

        check()

    def test_whatever_is_outside_is_named(self):
        for kind in KINDS:
            with self.subTest(kind.__name__):
                self.refuses(kind)

    def refuses(self, kind):
        @message_strategies.bounded(15)
        @hypothesis.given(message_strategies.invalid(kind))
        def check(drawn):
            where, raw = drawn
            problem = self.assertRaises(
                wire.MalformedMessage, kind.from_dict, raw
            )
            self.assertIn(where, str(problem))
            self.assertLess(len(str(problem)), 500)

        check()

    @message_strategies.bounded(15)
    @hypothesis.given(st.sampled_from(KINDS), message_strategies.ANYTHING)
    def test_nothing_else_is_raised(self, kind, raw):
        try:
            kind.from_dict(raw)
        except wire.MalformedMessage:
            pass

    def test_a_field_without_a_bound_cannot_be_read(self):
        for hint in (
            str,
            int,
            float,
            dict[str, ty.Any],
            tuple[int, ...],
            ty.Annotated[tuple[int, ...], bounds.Items(3)],
            str | None,
        ):
            kind = dataclasses.make_dataclass(
                'Loose', [('field', hint)], bases=(wire.Message,)
            )
            problem = self.assertRaises(
                TypeError, kind.from_dict, {'field': 'x'}
            )
            self.assertIn('Loose.field', str(problem))


class EdgeTestCase(base.BaseTestCase):
    def sample(self, **changes):
        return messages.UsageSample.from_dict(
            {
                'instance_uuid': UUID,
                'at': 1.0,
                'interval_us': 1,
                'guest_us': 1,
                'wait_us': 0,
                **changes,
            }
        )

    def refused(self, call, *words, **changes):
        problem = self.assertRaises(wire.MalformedMessage, call, **changes)
        for word in words:
            self.assertIn(word, str(problem))

    def test_numbers(self):
        self.sample(guest_us=2**53 - 1)
        self.refused(
            self.sample,
            'UsageSample.guest_us',
            '9007199254740992',
            'from 0 to',
            guest_us=2**53,
        )
        self.refused(self.sample, 'UsageSample.guest_us', '-1', guest_us=-1)
        self.refused(self.sample, 'UsageSample.at', at=2e12)
        self.refused(
            self.sample, 'UsageSample.at', 'thousands of digits', at=10**5000
        )

    def test_uuids_have_one_form(self):
        for bad in (
            UUID.upper(),
            UUID.replace('-', ''),
            '{%s}' % UUID,
            UUID + '\n',
            '../../allocations/' + UUID,
            '',
        ):
            self.refused(
                self.sample,
                'UsageSample.instance_uuid',
                'UUID',
                instance_uuid=bad,
            )

    def test_names_of_hosts(self):
        def report(host):
            return messages.Report.from_dict(
                {'host': host, 'batch': 1, 'at': 1.0}
            )

        for good in ('a', 'node 1.example.org', 'h\xe4h', 'x' * 255):
            self.assertEqual(good, report(good).host)
        for bad in (
            '',
            ' ',
            'a ',
            ' a',
            'a\t',
            'a\u3000',
            'a\nb',
            'a\0',
            'a\x85b',
            'a\u2028b',
            '\ud800',
            'x' * 256,
        ):
            self.refused(report, 'Report.host', 'blanks', host=bad)

    def test_text_for_people_is_cut_and_cleaned(self):
        found = messages.BackendInfo.from_dict(
            {
                'name': 'cfs',
                'usable': False,
                'reasons': ['x' * 5000, 'a\0b\ud800c', 'two\nlines'],
            }
        )
        self.assertEqual(
            (
                'x' * 4000,
                'a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c',
                'two\nlines',
            ),
            found.reasons,
        )

    def test_a_whole_report_has_a_bound(self):
        one = {'at': 'never read'}
        problem = self.assertRaises(
            wire.MalformedMessage,
            messages.Report.from_dict,
            {
                'host': 'h',
                'batch': 1,
                'at': 1.0,
                'usage': [one] * 90_000,
                'host_usage': [one] * 10_001,
            },
        )
        self.assertIn('Report: 100001 items', str(problem))

    def test_deep_figures(self):
        deep = []
        for _ in range(50_000):
            deep = [deep]
        problem = self.assertRaises(
            wire.MalformedMessage,
            messages.Event.from_dict,
            {
                'uuid': UUID,
                'at': 1.0,
                'code': 'x',
                'severity': 'info',
                'detail': '',
                'figures': {'a': deep},
            },
        )
        self.assertIn('Event.figures', str(problem))
        # Neither is one that is quoted in the error as a whole.
        self.refused(self.sample, 'UsageSample.guest_us', guest_us=deep)

    def test_prices(self):
        for bad in (-0.001, 1e9 + 1, 1e300):
            problem = self.assertRaises(
                wire.MalformedMessage,
                profiles.OverheadPrice.from_dict,
                {'term': 'net_rx', 'cost_ns': bad},
            )
            self.assertIn('OverheadPrice.cost_ns', str(problem))

    def test_what_hosts_may_price_schedulers_read(self):
        host = snapshot.Host.from_dict(
            {
                'name': 'h',
                'version': 1,
                'admitted_mcpu': 0,
                'facts': {
                    'cpus': 1,
                    'tick_us': 1,
                    'capacity_mcpu': 1,
                    'backends': [],
                },
                'prices_ns': {'net_rx': bounds.MAX_PRICE_NS, 'net_tx': 0},
            }
        )
        self.assertIsNotNone(host.fit().prices)

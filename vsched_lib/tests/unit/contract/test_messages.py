# SPDX-License-Identifier: Apache-2.0

"""Messages survive the trip through JSON, and nonsense is named."""

import dataclasses
import json

from oslotest import base

from vsched_lib.contract import collector_replies
from vsched_lib.contract import messages
from vsched_lib.contract import wire

KINDS = sorted(wire.Message.__subclasses__(), key=lambda one: one.__name__)

U1 = '1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b4f'


def event(**changes):
    return {
        'uuid': U1,
        'at': 1.5,
        'code': 'vsched.drift.repaired',
        'severity': 'info',
        'detail': 'x',
        **changes,
    }


class KindTestCase(base.BaseTestCase):
    def test_every_kind_is_a_frozen_dataclass(self):
        self.assertGreater(len(KINDS), 8)
        for kind in KINDS:
            self.assertTrue(dataclasses.is_dataclass(kind), kind)
            self.assertTrue(kind.__dataclass_params__.frozen, kind)


class ReaderTestCase(base.BaseTestCase):
    def malformed(self, kind, raw, *words):
        error = self.assertRaises(wire.MalformedMessage, kind.from_dict, raw)
        for word in words:
            self.assertIn(word, str(error))

    def test_unknown_keys_are_ignored(self):
        found = collector_replies.Overrides.from_dict(
            {'generation': 3, 'overrides': [], 'colour': 'red'}
        )
        self.assertEqual(collector_replies.Overrides(3), found)

    def test_defaults_fill_in(self):
        self.assertEqual(
            messages.Report('h', 1, 2.0),
            messages.Report.from_dict({'host': 'h', 'batch': 1, 'at': 2.0}),
        )

    def test_defaults_are_not_shared(self):
        one = messages.Event.from_dict(event())
        one.figures['a'] = 1
        self.assertEqual({}, messages.Event.from_dict(event()).figures)

    def test_whole_seconds_are_times(self):
        found = messages.Report.from_dict({'host': 'h', 'batch': 1, 'at': 2})
        self.assertIsInstance(found.at, float)

    def test_missing(self):
        for field in dataclasses.fields(collector_replies.Override):
            whole = collector_replies.Override(U1, 1, 2, 3, 'capped').to_dict()
            del whole[field.name]
            if (
                field.default is dataclasses.MISSING
                and field.default_factory is dataclasses.MISSING
            ):
                self.malformed(
                    collector_replies.Override, whole, 'Override.' + field.name
                )
            else:
                collector_replies.Override.from_dict(whole)

    def test_not_an_object(self):
        for raw in (None, [], 'x', 3):
            self.malformed(messages.Report, raw, 'Report')

    def test_ill_typed(self):
        for changes, words in (
            ({'uuid': 3}, ('Event.uuid', '3', 'str')),
            ({'uuid': None}, ('Event.uuid',)),
            ({'at': '1.5'}, ('Event.at', 'float')),
            ({'at': True}, ('Event.at', 'float')),
            ({'at': 10**400}, ('Event.at', 'finite')),
            ({'at': float('nan')}, ('Event.at', 'nan')),
            ({'at': float('inf')}, ('Event.at',)),
            ({'severity': 'loud'}, ('Event.severity', 'warning')),
            ({'severity': ['info']}, ('Event.severity',)),
            ({'severity': None}, ('Event.severity',)),
            ({'instance_uuid': 1}, ('Event.instance_uuid', 'str')),
            ({'figures': []}, ('Event.figures', 'object')),
        ):
            self.malformed(messages.Event, event(**changes), *words)
        for changes, words in (
            ({'batch': 1.0}, ('Report.batch', 'int')),
            ({'batch': True}, ('Report.batch', 'int')),
            ({'host_info': 'big'}, ('HostInfo',)),
            ({'host_info': {}}, ('HostInfo.agent_version',)),
            ({'instances': {}}, ('Report.instances', 'list')),
            ({'instances': 'ab'}, ('Report.instances', 'list')),
            ({'instances': [{}]}, ('InstanceInfo.instance_uuid',)),
            ({'usage': None}, ('Report.usage', 'list')),
            ({'events': [event(), event(at='x')]}, ('Event.at',)),
        ):
            self.malformed(
                messages.Report,
                {'host': 'h', 'batch': 1, 'at': 2.0, **changes},
                *words,
            )

    def test_nothing_and_empty_differ(self):
        unchanged = messages.Report('h', 1, 2.0, instances=None)
        all_gone = messages.Report('h', 1, 2.0, instances=())
        for one in (unchanged, all_gone):
            self.assertEqual(
                one,
                messages.Report.from_dict(
                    json.loads(json.dumps(one.to_dict()))
                ),
            )
        self.assertNotEqual(unchanged.to_dict(), all_gone.to_dict())

# SPDX-License-Identifier: Apache-2.0

"""Samples as text."""

import json

from oslotest import base

from vsched_api.db import packing
from vsched_api.tests import base as tests


def _sample(instance_uuid, at, promised_us=None):
    return packing.Sample(instance_uuid, at, 1, 2, 3, promised_us, 2**63 - 1)


class TestPacking(base.BaseTestCase):
    """What goes in comes out."""

    def test_what_was_packed_is_unpacked(self):
        told = [
            _sample(one, 0.1 + 0.2, promised_us)
            for one in tests.uuids(3)
            for promised_us in (None, 7)
        ]
        self.assertEqual(told, packing.unpack(packing.pack(told)))
        self.assertEqual([], packing.unpack(packing.pack([])))

    def test_one_of_many(self):
        one, other, absent = tests.uuids(3)
        told = [
            _sample(uuid, at)
            for at, uuid in enumerate((one, other, one, one, other))
        ]
        text = packing.pack(told)
        for uuid, places in ((one, [0, 2, 3]), (other, [1, 4]), (absent, [])):
            self.assertEqual(
                [(place, told[place]) for place in places],
                list(packing.unpack_one(text, uuid)),
            )

    def test_samples_of_a_release_that_knew_less(self):
        (one,) = tests.uuids(1)
        text = json.dumps([[one, 1.5, 10, 5, 0, None]])
        self.assertEqual(
            [packing.Sample(one, 1.5, 10, 5, 0, None)], packing.unpack(text)
        )
        self.assertEqual(0, packing.unpack(text)[0].disk_write_requests)

    def test_executions(self):
        one, other = tests.uuids(2)
        known, unknown = (
            packing.Sample(one, 1.0, 1, 2, 3, None)._replace(executions=counts)
            for counts in ((7, 6, 5, 4, 3, 2, 1), None)
        )
        elsewhere = known._replace(instance_uuid=other, executions=(0,) * 7)
        for samples in (
            [known, unknown, elsewhere],
            [unknown, known, unknown],
            [known],
        ):
            text = packing.pack(samples)
            executions = packing.pack_executions(samples)
            self.assertEqual(samples, packing.unpack(text, executions))
            self.assertEqual(
                [
                    (place, sample)
                    for place, sample in enumerate(samples)
                    if sample.instance_uuid == one
                ],
                list(packing.unpack_one(text, one, executions)),
            )
            # An earlier release reads the rest, and no more than it knows.
            self.assertEqual(
                {packing.EXECUTIONS}, set(map(len, json.loads(text)))
            )
        self.assertIsNone(packing.pack_executions([unknown, unknown]))
        self.assertIsNone(packing.pack_executions([]))
        # Of a newer agent: what this release does not know is not stored.
        newer = known._replace(executions=(*known.executions, 99))
        self.assertEqual(
            packing.pack_executions([known]), packing.pack_executions([newer])
        )

    def test_seconds(self):
        (one,) = tests.uuids(1)

        def split(*ends):
            return {
                at: [sample.at for sample in samples]
                for at, samples in packing.by_second(
                    [_sample(one, end) for end in ends]
                )
            }

        self.assertEqual({}, split())
        # A second ends at its own name.
        self.assertEqual({2.0: [1.1, 2, 1.5]}, split(1.1, 2, 1.5))
        self.assertEqual(
            {0.0: [0], 1.0: [5e-324, 1], 3.0: [2.5]}, split(5e-324, 0, 2.5, 1)
        )

    def test_no_value_is_without_bound(self):
        (one,) = tests.uuids(1)
        parts = list(
            packing.by_second(
                [_sample(one, 1)] * (2 * packing.MAX_SAMPLES + 1)
            )
        )
        self.assertEqual(
            [packing.MAX_SAMPLES, packing.MAX_SAMPLES, 1],
            [len(samples) for _, samples in parts],
        )
        self.assertEqual({1.0}, {at for at, _ in parts})

    def test_times_without_the_rest(self):
        for ends in ((), (0, 1), (0.1 + 0.2, 1e-7, 1.8e9, 1_800_000_000.25)):
            text = packing.pack(
                [
                    _sample(*pair)
                    for pair in zip(tests.uuids(len(ends)), ends, strict=True)
                ]
            )
            self.assertEqual(list(ends), packing.times(text))

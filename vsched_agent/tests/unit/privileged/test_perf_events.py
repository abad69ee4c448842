# SPDX-License-Identifier: Apache-2.0

"""Whom events are opened of, and how many."""

import errno

from oslotest import base

from vsched_agent.privileged import ownership
from vsched_agent.privileged import perf_events


class TestOpenEach(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.patch(
            ownership,
            'refusals',
            lambda tids: {tid: 'no' for tid in tids if tid > 90},
        )
        self.opened = {}
        self.begun = []

    def begin(self, tid):
        self.begun.append(tid)
        if tid == 80:
            raise OSError(errno.ESRCH, 'gone')
        return -tid

    def open(self, *tids):
        return perf_events.open_each(self.opened, iter(tids), 2, self.begin)

    def test_each_is_opened_once(self):
        self.assertEqual({1: 0, 2: 0}, self.open(1, 2))
        self.assertEqual({2: 0}, self.open(2))
        self.assertEqual({1: -1, 2: -2}, self.opened)
        self.assertEqual([1, 2], self.begun)

    def test_others_are_refused_and_the_gone_are_named(self):
        self.assertEqual(
            {91: errno.EPERM, 80: errno.ESRCH, 1: 0}, self.open(91, 80, 1)
        )
        self.assertEqual([80, 1], self.begun)
        self.assertEqual({1: -1}, self.opened)

    def test_no_more_than_so_many(self):
        self.assertRaises(ValueError, self.open, 1, 2, 3)
        self.assertEqual({1: -1, 2: -2}, self.opened)

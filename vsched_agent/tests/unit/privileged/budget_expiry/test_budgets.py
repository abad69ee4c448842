# SPDX-License-Identifier: Apache-2.0

import os

from oslotest import base

from vsched_agent.privileged.budget_expiry import budgets
from vsched_agent.privileged import ownership
from vsched_agent.tests import in_process


class _Never:
    """Stands for what must not be reached."""

    def flags(self, _tid):
        return 0

    def watch(self, *_args):
        raise AssertionError('a thread of others was accepted')

    def stop(self):
        """End nothing."""


class TestForeignThreads(base.BaseTestCase):
    """The helper refuses them, and all of the request with them."""

    def setUp(self):
        super().setUp()
        inside = in_process.entrypoints(budgets.budgets_pctxt)
        inside.__enter__()
        self.addCleanup(inside.__exit__, None, None, None)
        self.patch(
            ownership,
            'refusals',
            lambda tids: {
                tid: 'thread %d is the shell' % tid for tid in tids if tid == 8
            },
        )
        self.patch(budgets, '_checker', _Never())
        self.patch(budgets, '_governor', _Never())
        self.requests = [
            (tid, 1_000_000, 20_000_000, 0) for tid in (os.getpid(), 8)
        ]

    def test_neither_checked_nor_given_idle_time(self):
        for act in (
            lambda: budgets.watch(self.requests, 100),
            lambda: budgets.reclaim(self.requests),
        ):
            refusal = self.assertRaises(PermissionError, act)
            self.assertEqual('thread 8 is the shell', str(refusal))

# SPDX-License-Identifier: Apache-2.0

"""Telling agents, and not waiting for them."""

import threading
from unittest import mock

from oslotest import base

from vsched_api.operations import announcements
from vsched_lib.contract import agent_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import request_context

PATIENCE_S = 60


class TestAnnouncer(base.BaseTestCase):
    """With agents that answer, fail or hang."""

    def setUp(self):
        super().setUp()
        self.agents = mock.create_autospec(
            agent_rpc.AgentClient, instance=True
        )
        patch = mock.patch.object(
            agent_rpc, 'AgentClient', autospec=True, return_value=self.agents
        )
        patch.start()
        self.addCleanup(patch.stop)
        self.announcer = announcements.Announcer(object())

    def test_all_are_told(self):
        told = threading.Semaphore(0)
        self.agents.overrides_changed.side_effect = lambda *args: (
            told.release()
        )
        self.announcer.overrides_changed(['a', 'b'], 7)
        for _ in range(2):
            self.assertTrue(told.acquire(timeout=PATIENCE_S))
        self.assertCountEqual(
            [mock.call('a', 7, mock.ANY), mock.call('b', 7, mock.ANY)],
            self.agents.overrides_changed.mock_calls,
        )

    def test_agents_are_told_whose_request_it_is(self):
        told = threading.Semaphore(0)
        self.agents.jobs_changed.side_effect = lambda *args: told.release()
        self.addCleanup(request_context.incoming, {})
        request_context.incoming({'request_id': 'req-1', 'user_id': 'ann'})
        self.announcer.jobs_changed('a', 3)
        self.assertTrue(told.acquire(timeout=PATIENCE_S))
        self.agents.jobs_changed.assert_called_once_with(
            'a', 3, {'request_id': 'req-1', 'user_id': 'ann'}
        )

    def test_a_failure_does_not_end_it(self):
        told = threading.Semaphore(0)

        def tell(host, generation, request):
            told.release()
            raise {1: errors.Unreachable('x'), 2: KeyError('x')}[generation]

        self.agents.overrides_changed.side_effect = tell
        for generation in (1, 2, 1):
            self.announcer.overrides_changed(['a'], generation)
            self.assertTrue(told.acquire(timeout=PATIENCE_S))

    def test_nobody_waits_and_only_the_newest_is_told(self):
        begun, go_on = threading.Semaphore(0), threading.Event()
        self.addCleanup(go_on.set)

        def tell(host, generation, request):
            begun.release()
            go_on.wait(PATIENCE_S)

        self.agents.overrides_changed.side_effect = tell
        self.announcer.overrides_changed(['a'], 1)
        self.assertTrue(begun.acquire(timeout=PATIENCE_S))
        for generation in (2, 4, 3):
            self.announcer.overrides_changed(['a'], generation)
        go_on.set()
        self.assertTrue(begun.acquire(timeout=PATIENCE_S))
        self.assertEqual(
            [mock.call('a', 1, mock.ANY), mock.call('a', 4, mock.ANY)],
            self.agents.overrides_changed.mock_calls,
        )

    def test_jobs_and_overrides_are_told_apart(self):
        told = threading.Semaphore(0)
        for method in (
            self.agents.overrides_changed,
            self.agents.jobs_changed,
        ):
            method.side_effect = lambda *args: told.release()
        self.announcer.overrides_changed(['a'], 7)
        self.announcer.jobs_changed('a', 3)
        for _ in range(2):
            self.assertTrue(told.acquire(timeout=PATIENCE_S))
        self.agents.overrides_changed.assert_called_once_with('a', 7, mock.ANY)
        self.agents.jobs_changed.assert_called_once_with('a', 3, mock.ANY)

    def test_without_a_bus_nothing_is_said(self):
        announcements.Announcer().overrides_changed(['a'], 1)
        announcements.Announcer().jobs_changed('a', 1)
        self.agents.overrides_changed.assert_not_called()

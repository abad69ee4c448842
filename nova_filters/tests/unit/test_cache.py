# SPDX-License-Identifier: Apache-2.0

"""The copy of one process, and the thread that updates it."""

import os
import threading
from unittest import mock

from oslotest import base

from nova_filters import cache
from nova_filters import hosts
from nova_filters import source
from nova_filters.tests import fakes


class TestCache(base.BaseTestCase):
    """With answers that are made up."""

    def make(self, *answers, made=None, **options):
        self.source = fakes.Source(*answers)
        found = cache.Cache(
            made or (lambda: self.source), **{'interval_s': 0.01, **options}
        )
        self.addCleanup(found.stop)
        return found

    def test_nothing_is_begun_before_the_first_use(self):
        made = mock.Mock(side_effect=lambda: fakes.Source())
        before = fakes.snapshot_threads()
        found = self.make(made=made)
        self.assertEqual(set(), fakes.snapshot_threads() - before)
        self.assertEqual(0, made.call_count)
        self.assertTrue(found.wait(60))
        self.assertEqual(1, made.call_count)

    def test_changes_are_asked_for_since_what_is_known(self):
        found = self.make(interval_s=100)
        self.source.answers = [
            fakes.answer(fakes.host()),
            fakes.answer(fakes.host('node2', 2), full=False, more=True),
            fakes.answer(fakes.host('node3', 3), full=False),
        ]
        self.assertFalse(found.refresh(self.source))
        self.assertTrue(found.refresh(self.source))
        self.assertFalse(found.refresh(self.source))
        self.assertFalse(found.refresh(self.source))
        self.assertEqual(
            [(None, None), (1, 'tag1'), (2, 'tag2'), (3, 'tag3')],
            self.source.asked,
        )
        self.assertEqual(
            {'node1', 'node2', 'node3'}, set(found._known.hosts.by_name)
        )

    def test_what_is_known_is_kept_while_the_service_is_away(self):
        now = [100.0]
        away = source.Unavailable('no answer')
        found = self.make(clock=lambda: now[0])
        self.source.answers = [
            fakes.answer(fakes.host()),
            away,
            away,
            fakes.answer(fakes.host(version=2)),
        ]
        found.refresh(self.source)
        first = found._known
        self.assertFalse(first.stale(160.0, 60.0))
        self.assertTrue(first.stale(161.0, 60.0))
        now[0] = 200.0
        for _ in range(2):
            self.assertRaises(source.Unavailable, found.refresh, self.source)
            self.assertIs(first, found._known)
        found.refresh(self.source)
        self.assertEqual(
            (2, 200.0), (found._known.hosts.version, found._known.at)
        )
        # An answer without changes renews the age.
        now[0] = 300.0
        found.refresh(self.source)
        self.assertEqual(
            (2, 300.0), (found._known.hosts.version, found._known.at)
        )

    def test_the_thread_outlives_every_failure(self):
        done = threading.Event()
        asked = []

        class Flaky(fakes.Source):
            def get(self, since=None, tag=None):
                asked.append(since)
                if len(asked) == 1:
                    raise source.Unavailable('not yet')
                if len(asked) == 2:
                    raise RuntimeError('a bug')
                done.set()
                return super().get(since, tag)

        found = self.make(made=lambda: Flaky(fakes.answer(fakes.host())))
        self.assertIs(hosts.NOTHING, found.known().hosts)
        self.assertTrue(done.wait(60))
        self.assertTrue(found.wait(60))
        self.assertEqual({'node1'}, set(found.known().hosts.by_name))

    def test_one_thread_for_all(self):
        names = []

        def made():
            names.append(threading.current_thread().name)
            return fakes.Source()

        found = self.make(made=made)
        users = [threading.Thread(target=found.known) for _ in range(8)]
        for one in users:
            one.start()
        for one in users:
            one.join()
        self.assertTrue(found.wait(60))
        self.assertEqual(['vsched-snapshot'], names)

    def test_a_forked_process_has_a_thread_of_its_own(self):
        found = self.make(fakes.answer(fakes.host()))
        self.assertTrue(found.wait(60))
        child = os.fork()
        if not child:
            status = 1
            try:
                # What the parent knew is known at once, and kept up to date.
                good = 'node1' in found.known().hosts.by_name
                good = good and found.wait(60)
                good = good and found._thread.is_alive()
                status = 0 if good else 1
            finally:
                os._exit(status)
        self.assertEqual(0, os.waitpid(child, 0)[1])

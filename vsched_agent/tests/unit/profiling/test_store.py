# SPDX-License-Identifier: Apache-2.0

import os
import pathlib

import fixtures
from oslotest import base

from vsched_agent.profiling import new_profiles
from vsched_agent.profiling import store
from vsched_agent.tests import profiles
from vsched_lib.contract import profiles as contract

BENCHMARK = contract.ProfileSource.BENCHMARK
LIVE = contract.ProfileSource.LIVE


class TestStore(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.folder = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'error'
        )
        self.store = store.Profiles(contract.ErrorProfile, self.folder, keep=3)

    def keep(self, version, source=BENCHMARK, samples=(1, 2, 3)):
        found = profiles.profile(
            profiles.point(samples), version=version, source=source
        )
        self.store.keep(found)
        return found

    def test_nothing_yet(self):
        self.assertIsNone(self.store.latest(BENCHMARK))
        self.assertEqual(1, self.store.next_version(BENCHMARK))
        self.assertEqual({}, self.store.newest())

    def test_the_newest_of_each_source(self):
        self.keep(1)
        second = self.keep(2)
        live = self.keep(1, LIVE)
        self.assertEqual(second, self.store.latest(BENCHMARK))
        self.assertEqual(live, self.store.latest(LIVE))
        self.assertEqual({BENCHMARK: 2, LIVE: 1}, self.store.newest())
        self.assertEqual(3, self.store.next_version(BENCHMARK))

    def test_the_oldest_go(self):
        for version in range(1, 6):
            self.keep(version)
        self.assertIsNone(self.store.load(BENCHMARK, 2))
        self.assertIsNotNone(self.store.load(BENCHMARK, 3))
        self.assertEqual(3, len(os.listdir(self.folder)))

    def test_one_that_is_broken_is_passed_over(self):
        first = self.keep(1)
        for text in ('', '{}', '[1]', '{"uuid": 3}'):
            pathlib.Path(self.folder, 'benchmark-000002.json').write_text(text)
            self.assertEqual(first, self.store.latest(BENCHMARK))

    def test_strangers_are_left_alone(self):
        self.keep(1)
        for name in ('benchmark-1.json', 'other-000009.json', 'x.new'):
            pathlib.Path(self.folder, name).write_text('x')
        self.assertEqual(2, self.store.next_version(BENCHMARK))

    def test_one_that_can_not_be_written_changes_nothing(self):
        self.keep(1)
        self.patch(store.os, 'rename', self._fail)
        self.assertRaises(OSError, self.keep, 2)
        self.assertEqual(['benchmark-000001.json'], os.listdir(self.folder))

    def _fail(self, *_):
        raise OSError(28, 'full')

    def test_news(self):
        found = new_profiles.News(self.store)
        self.assertEqual([], found.poll())
        self.assertIsNone(found.benchmark())
        first = self.keep(1, samples=[1000] * 200)
        self.assertEqual([(first, None)], found.poll())
        self.assertEqual([], found.poll())
        self.assertEqual(first, found.benchmark())
        second = self.keep(2, samples=[-50_000] * 200)
        self.assertEqual([(second, first)], found.poll())
        # Each source has a line of its own.
        live = self.keep(1, LIVE)
        self.assertEqual([(live, None)], found.poll())
        self.assertEqual(second, found.benchmark())

    def measured(self, before):
        found = new_profiles.News(self.store)
        found.poll()
        return [one.version for one in found.measured(before)]

    def test_runs_that_are_through(self):
        self.assertEqual([], self.measured(None))
        for version in (1, 2, 3, 4):
            self.keep(version)
        for before, versions in (
            (4, []),
            (3, [4]),
            (1, [2, 3, 4]),
            # Nobody knows which were told of.
            (None, [4]),
            # The folder was removed, and versions began anew.
            (9, [4]),
        ):
            self.assertEqual(versions, self.measured(before), before)
        with open(
            os.path.join(self.folder, 'benchmark-000003.json'), 'w'
        ) as file:
            file.write('garbage')
        self.assertEqual([2, 4], self.measured(1))

    def test_runs_are_through_once(self):
        found = new_profiles.News(self.store)
        self.keep(1)
        # Whoever does not look has not seen it.
        self.assertEqual([], found.measured(None))
        found.poll()
        self.assertEqual(1, len(found.measured(None)))
        self.assertEqual([], found.measured(None))
        self.keep(2)
        found.poll()
        self.assertEqual([2], [one.version for one in found.measured(1)])
        self.assertEqual([], found.measured(1))

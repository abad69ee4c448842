# SPDX-License-Identifier: Apache-2.0

"""What the drill is made of, without anything to kill."""

import random
import threading

import fixtures
from oslotest import base

from vsched_standalone.tests import drill
from vsched_standalone.tests import drill_scene


class _Counter(drill_scene.Background):
    def __init__(self, problem=None):
        super().__init__()
        self.begun = threading.Event()
        self._raised = problem

    def _run(self):
        self.begun.set()
        if self._raised is not None:
            raise self._raised
        self._stopping.wait()


class BackgroundTestCase(base.BaseTestCase):
    def test_it_ends_with_the_block(self):
        with _Counter() as counter:
            self.assertTrue(counter.begun.wait(60))

    def test_what_ended_it_is_raised(self):
        def fail():
            with _Counter(ProcessLookupError('no such thread')) as counter:
                counter.begun.wait(60)

        self.assertRaises(ProcessLookupError, fail)

    def test_what_ended_the_block_goes_first(self):
        def fail():
            with _Counter(ProcessLookupError('no such thread')) as counter:
                counter.begun.wait(60)
                raise ValueError('the block')

        self.assertRaises(ValueError, fail)


class _Scene:
    """Notes what is killed at a time."""

    def __init__(self):
        self.killed = [[]]

    def kill(self, component):
        self.killed[-1].append(component)


class _Supervisor:
    lock = threading.RLock()


class KillTestCase(base.BaseTestCase):
    def kill(self, seed):
        scene = _Scene()
        self.useFixture(
            fixtures.MockPatchObject(
                drill,
                'recover',
                lambda scene, since: scene.killed.append([]) or 0.5,
            )
        )
        faults = drill._kill(
            scene, _Supervisor(), 0, random.Random(seed), (0, 0)
        )
        return scene.killed[:-1], faults

    def test_each_part_and_none_twice_at_once(self):
        twice = 0
        for seed in range(100):
            rounds, faults = self.kill(seed)
            for killed in rounds:
                self.assertIn(len(killed), (1, 2))
                self.assertEqual(len(set(killed)), len(killed), rounds)
                twice += len(killed) == 2
            self.assertEqual(
                set(drill_scene.COMPONENTS), {one.component for one in faults}
            )
            self.assertEqual(
                [name for killed in rounds for name in killed],
                [one.component for one in faults],
            )
        self.assertGreater(twice, 0)

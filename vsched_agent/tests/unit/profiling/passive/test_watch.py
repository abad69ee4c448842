# SPDX-License-Identifier: Apache-2.0

import random

from oslotest import base

from vsched_agent.profiling.passive import watch

MS = 1_000_000
#: Of a promise of 6 ms every 10 ms.
FREE_NS = 4 * MS


class Thread:
    """Plays a thread and what the kernel would tell of it."""

    def __init__(self):
        self.now_ns = self.ran_ns = self.waited_ns = 0
        self._waiting_ns = 0
        self._runs = False
        self._new = []
        self.looks = []
        self._due_ns = 0

    def do(self, what, length_ns):
        """Run, wait or sleep for so long."""
        if what == 'run' and not self._runs:
            self._new.append((self.now_ns, True))
            # The kernel counts a wait when it is over.
            self.waited_ns += self._waiting_ns
            self._waiting_ns = 0
        elif what != 'run' and self._runs:
            self._new.append((self.now_ns, False))
        self._runs = what == 'run'
        while length_ns:
            step = min(length_ns, self._due_ns - self.now_ns)
            self.now_ns += step
            length_ns -= step
            if what == 'run':
                self.ran_ns += step
            elif what == 'wait':
                self._waiting_ns += step
            if self.now_ns == self._due_ns:
                self.look()

    def look(self):
        self.looks.append(
            watch.Look(
                self.now_ns, self.ran_ns, self.waited_ns, tuple(self._new)
            )
        )
        self._new = []
        self._due_ns += 1000 * MS

    def periods(self, seconds, slept_ns=0):
        """Burn, but for so many short sleeps a second."""
        for number in range(100 * seconds):
            self.do('run', 2 * MS)
            if not number % 10:
                self.do('sleep', slept_ns)
            self.do('run', 4 * MS)
            self.do('wait', 4 * MS - (slept_ns if not number % 10 else 0))


def shares(thread, free_ns=FREE_NS):
    return [
        window.got_ns / window.length_ns
        for window in watch.eager(thread.looks, free_ns)
    ]


class TestEager(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.thread = Thread()

    def test_who_burns_is_in_every_second_but_the_ends(self):
        self.thread.periods(6)
        self.assertEqual([0.6] * 4, shares(self.thread)[-4:])

    def test_short_sleeps_are_no_matter(self):
        self.thread.periods(6, slept_ns=MS // 10)
        found = shares(self.thread)
        self.assertEqual(4, len(found))
        for share in found:
            self.assertAlmostEqual(0.6, share, 6)

    def test_long_ones_are(self):
        self.thread.periods(6, slept_ns=MS)
        self.assertEqual([], shares(self.thread))

    def test_who_got_less_while_it_wanted_more_is_an_error(self):
        self.thread.periods(2)
        for _ in range(100):
            self.thread.do('run', 5 * MS)
            self.thread.do('wait', 5 * MS)
        self.thread.periods(3)
        self.assertIn(0.5, [round(one, 6) for one in shares(self.thread)])

    def test_who_slept_all_the_second_got_nothing_and_shows_nothing(self):
        self.thread.periods(3)
        self.thread.do('sleep', 1000 * MS)
        self.thread.periods(3)
        for share in shares(self.thread):
            self.assertAlmostEqual(0.6, share, 3)

    def test_who_went_to_sleep_for_good(self):
        self.thread.periods(3)
        self.thread.do('sleep', 5000 * MS)
        # The last second before it may have been cut short.
        self.assertEqual(
            [0.6, 0.6], [round(one, 6) for one in shares(self.thread)]
        )

    def test_who_never_leaves_the_cpu(self):
        self.thread.do('run', MS)
        self.thread.do('wait', MS)
        self.thread.do('run', 5000 * MS)
        self.assertEqual(
            [1.0, 1.0, 1.0],
            [round(one, 2) for one in shares(self.thread, 0)][-3:],
        )

    def test_nobody_saw_it_run(self):
        self.thread.do('sleep', 5000 * MS)
        self.assertEqual([], shares(self.thread))
        self.assertEqual([], watch.eager([], FREE_NS))

    def test_time_that_was_stolen_is_not_what_it_got(self):
        self.thread.periods(6)
        looks = [
            one._replace(ran_ns=one.ran_ns * 9 // 10)
            for one in self.thread.looks
        ]
        for window in watch.eager(looks, FREE_NS):
            self.assertAlmostEqual(0.54, window.got_ns / window.length_ns, 4)

    def test_whatever_it_does_no_second_with_much_sleep_is_taken(self):
        chance = random.Random(7)
        for _ in range(50):
            thread = Thread()
            slept = []
            while thread.now_ns < 8000 * MS:
                what = chance.choice(('run', 'wait', 'run', 'sleep'))
                start_ns = thread.now_ns
                thread.do(what, chance.randrange(1, 8 * MS))
                if what == 'sleep':
                    slept.append((start_ns, thread.now_ns))
            taken = watch.eager(thread.looks, FREE_NS)
            ends = [one.at_ns for one in thread.looks]
            free = sum(
                sum(
                    max(0, min(end, stop) - max(begin, start))
                    for start, stop in slept
                )
                <= FREE_NS
                for begin, end in zip(ends, ends[1:], strict=False)
            )
            self.assertLessEqual(len(taken), free)

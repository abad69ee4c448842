# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from benchmarks import streaming


def steady(count, first_s=0.0):
    return [first_s + one / 50 for one in range(count)]


def held(arrivals_s, place, delay_s):
    """Return arrivals of which one, and what follows it, is late."""
    until_s = arrivals_s[place] + delay_s
    return [
        max(until_s, one) if number >= place else one
        for number, one in enumerate(arrivals_s)
    ]


class GapsTestCase(base.BaseTestCase):
    def gaps(self, arrivals_s, length_s):
        return streaming.gaps(arrivals_s, length_s, 50, 2)

    def test_steady_stream(self):
        self.assertEqual(0, self.gaps(steady(50), 1.0))

    def test_what_the_buffer_takes_is_no_gap(self):
        self.assertEqual(0, self.gaps(held(steady(50), 20, 0.019), 1.0))

    def test_late_packet(self):
        self.assertEqual(1, self.gaps(held(steady(50), 20, 0.021), 1.0))

    def test_a_gap_refills_the_buffer(self):
        # After the first gap the client plays later, and is safe from less.
        late = held(held(steady(50), 20, 0.03), 30, 0.028)
        self.assertEqual(1, self.gaps(late, 1.0))
        self.assertEqual(2, self.gaps(held(late, 40, 0.1), 1.0))

    def test_stream_that_ends(self):
        self.assertEqual(1, self.gaps(steady(25), 1.0))
        self.assertEqual(2, self.gaps(held(steady(25), 10, 0.05), 1.0))

    def test_times_in_another_order(self):
        mixed = steady(50)
        mixed[20:22] = mixed[21], mixed[20]
        self.assertEqual(0, self.gaps(mixed, 1.0))

    def test_stream_that_is_too_slow(self):
        self.assertLess(5, self.gaps([one / 40 for one in range(400)], 10.0))

    def test_nothing_came(self):
        self.assertEqual(1, self.gaps([], 1.0))
        self.assertEqual(1, self.gaps([0.5], 1.0))


class LargestTestCase(base.BaseTestCase):
    def test_each_limit_is_found(self):
        for limit in (0, *streaming.LADDER):
            tried = []

            def serves(clients, limit=limit, tried=tried):
                tried.append(clients)
                return clients <= limit

            self.assertEqual(
                limit, streaming.largest(streaming.LADDER, serves)
            )
            self.assertLessEqual(len(tried), 5)


class MetricsTestCase(base.BaseTestCase):
    def found(self, default, shaped):
        return {
            name: [{'clients': one} for one in counts]
            for name, counts in (
                (streaming.DEFAULT, default),
                (streaming.FIXED, [5] * len(default)),
                (streaming.SHAPED, shaped),
            )
        }

    def test_ratio_of_repeats(self):
        metrics = streaming.metrics(self.found([2, 4, 10], [8, 12, 20]))
        self.assertEqual(3.0, metrics['clients_ratio'])
        self.assertEqual(4, metrics['clients_default'])
        self.assertEqual(set(streaming.ABOUT.units), set(metrics))

    def test_none_served_counts_as_one(self):
        metrics = streaming.metrics(self.found([0], [7]))
        self.assertEqual(7, metrics['clients_ratio'])

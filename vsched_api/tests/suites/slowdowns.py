# SPDX-License-Identifier: Apache-2.0

"""Learning what neighbours cost each other: on every database alike."""

from vsched_api.db.queries import slowdowns as queries
from vsched_api.operations import rollups
from vsched_api.operations import slowdowns
from vsched_api.tests import base
from vsched_lib.contract import messages
from vsched_lib.model import interference

MINUTE_S = 60


class Slowdowns:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        self.start = base.NOW // MINUTE_S * MINUTE_S
        self.node = self.agent()

    def run_for(self, minutes, *instances):
        """Have instances of (uuid, class, guest, wait) run on the host."""
        self.now = self.start + (minutes + 3) * MINUTE_S
        self.node.send(
            listed=False,
            instances=tuple(
                messages.InstanceInfo(uuid, 'vm', 1, name)
                for uuid, name, _, _ in instances
            ),
            host_info=base.host_info(),
        )
        for minute in range(minutes):
            self.node.send(
                listed=False,
                usage=[
                    base.sample(
                        uuid,
                        self.start + minute * MINUTE_S + second,
                        interval_us=30_000_000,
                        guest_us=guest_us,
                        wait_us=wait_us,
                    )
                    for uuid, _, guest_us, wait_us in instances
                    for second in (29, 59)
                ],
            )
        rollups.fold(self.database, 1000)

    def learn(self):
        return slowdowns.learn(self.database, self.now, MINUTE_S)

    def known(self):
        return self.database.read(queries.every)

    def test_what_was_waited_for_beside_a_neighbour(self):
        one, two = base.uuids(2)
        self.run_for(
            3,
            (one, 'compute', 10_000_000, 8_000_000),
            (two, 'bandwidth', 10_000_000, 1_000_000),
        )
        self.assertEqual(6, self.learn())
        known = self.known()
        # Of this nothing was known.
        self.assertAlmostEqual(0.8, known['compute', 'bandwidth'].slowdown)
        self.assertEqual(3, known['compute', 'bandwidth'].samples)
        # Of this the prior.
        found = known['bandwidth', 'compute']
        self.assertTrue(0.1 < found.slowdown < interference.MUCH, found)
        self.assertEqual(
            {('compute', 'bandwidth'), ('bandwidth', 'compute')}, set(known)
        )

    def test_no_minute_counts_twice(self):
        one, two = base.uuids(2)
        self.run_for(
            2, (one, 'web', 10_000_000, 0), (two, 'disk', 10_000_000, 0)
        )
        self.assertEqual(4, self.learn())
        before = self.known()
        self.assertEqual(0, self.learn())
        self.assertEqual(before, self.known())

    def test_who_says_nothing(self):
        one, two, three = base.uuids(3)
        self.run_for(
            1,
            (one, None, 10_000_000, 9_000_000),
            (two, 'disk', 100_000, 9_000_000),
            (three, 'web', 10_000_000, 0),
        )
        # Only the web server ran, and has a neighbour of a class.
        self.assertEqual(1, self.learn())
        self.assertEqual({('web', 'disk')}, set(self.known()))
        self.now += 60 * MINUTE_S
        self.assertEqual(0, self.learn())

    def test_a_host_counts_once_whatever_it_reports(self):
        """Every scheduler uses what one host may make up."""
        uuids = base.uuids(40)
        self.run_for(
            1,
            *((one, 'web', 1_000_000, 2**53 - 1) for one in uuids[:20]),
            *((one, 'disk', 1_000_000, 2**53 - 1) for one in uuids[20:]),
        )
        self.assertEqual(2, self.learn())
        known = self.known()
        # Of one measurement among those of the prior.
        found = known['web', 'disk']
        self.assertEqual(interference.PRIOR_SAMPLES + 1, found.samples)
        self.assertLess(
            found.slowdown,
            interference.SOME + slowdowns.LARGEST / interference.PRIOR_SAMPLES,
        )
        self.assertLessEqual(
            max(one.slowdown for one in known.values()), slowdowns.LARGEST
        )

    def test_instances_of_a_class_are_one_measurement(self):
        one, two, three = base.uuids(3)
        self.run_for(
            1,
            (one, 'compute', 10_000_000, 8_000_000),
            (two, 'compute', 10_000_000, 2_000_000),
            (three, 'bandwidth', 50_000, 0),
        )
        self.assertEqual(1, self.learn())
        # The mean of 0.8 and 0.2, beside one neighbour of each class.
        known = self.known()
        self.assertAlmostEqual(0.25, known['compute', 'bandwidth'].slowdown)
        self.assertEqual(1, known['compute', 'bandwidth'].samples)

    def test_alone_nobody_is_slowed_down(self):
        (one,) = base.uuids(1)
        self.run_for(1, (one, 'web', 10_000_000, 9_000_000))
        self.assertEqual(0, self.learn())
        self.assertEqual({}, self.known())

    def test_schedulers_are_told(self):
        client = self.client()
        before = client.get('/v1/snapshot')
        self.assertEqual([], before.json['slowdowns'])
        one, two = base.uuids(2)
        self.run_for(
            1,
            (one, 'compute', 10_000_000, 8_000_000),
            (two, 'bandwidth', 50_000, 0),
        )
        self.learn()
        after = client.get(
            '/v1/snapshot', headers={'If-None-Match': before.headers['ETag']}
        )
        self.assertEqual(
            [
                {
                    'victim': 'compute',
                    'neighbour': 'bandwidth',
                    'slowdown': 0.8,
                    'samples': 1,
                }
            ],
            after.json['slowdowns'],
        )

# SPDX-License-Identifier: Apache-2.0

"""Changes and reports at the same moment: on every database alike."""

import threading

from vsched_api.db import errors as db_errors
from vsched_api.operations import errors
from vsched_api.operations import overrides
from vsched_api.operations import reservations as reservation_operations
from vsched_api.tests import base
from vsched_api.tests.suites import reservations


class Concurrency(reservations.Changes):
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def change_at_last(self, uuid, **fields):
        """Try again, as the answer asks for, while the database is busy."""
        while True:
            try:
                return self.change(uuid, **fields)
            except db_errors.DatabaseBusy:
                continue

    def test_parallel_changes_lose_nothing(self):
        many = base.uuids(4)
        agent = self.agent()
        agent.first(*many)
        rounds, failed, generations = 5, [], []
        start = threading.Barrier(len(many) + 1)

        def work(uuid):
            start.wait()
            for number in range(rounds):
                try:
                    generations.append(
                        self.change_at_last(
                            uuid, runtime_us=1_000 + number
                        ).generation
                    )
                except Exception as error:
                    failed.append(error)

        # All fields of one instance from several sides, too.
        def fields():
            start.wait()
            for number in range(rounds):
                try:
                    generations.append(
                        self.change_at_last(
                            many[0], period_us=30_000 + number
                        ).generation
                    )
                except Exception as error:
                    failed.append(error)

        threads = [
            threading.Thread(target=work, args=(one,)) for one in many
        ] + [threading.Thread(target=fields)]
        self.assertIsNotNone(self.database)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], failed)
        self.assertEqual(rounds * len(threads), len(set(generations)))
        reply = agent.send(listed=False)
        self.assertEqual(max(generations), reply.overrides_generation)
        wanted = {
            one.instance_uuid: one
            for one in agent._collector.on_overrides(base.HOST).overrides
        }
        self.assertEqual(set(many), set(wanted))
        for one in many:
            self.assertEqual(1_000 + rounds - 1, wanted[one].runtime_us)
        self.assertEqual(30_000 + rounds - 1, wanted[many[0]].period_us)

    def test_of_changes_based_on_the_same_one_wins(self):
        (one,) = base.uuids(1)
        self.agent().first(one)
        start = threading.Barrier(6)
        for _ in range(5):
            self.change(one, runtime_us=6_000)
            known = reservation_operations.get(self.database, one).generation
            won, lost, other = [], [], []

            def work(number, known=known, won=won, lost=lost, other=other):
                start.wait()
                try:
                    won.append(
                        reservation_operations.change(
                            self.database,
                            self.announcer,
                            overrides.Change(one, self.now, expected=known),
                            {'runtime_us': 7_000 + number},
                        ).runtime_us
                    )
                except errors.Outdated:
                    lost.append(number)
                except Exception as error:
                    other.append(error)

            threads = [
                threading.Thread(target=work, args=(number,))
                for number in range(6)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(([], 1, 5), (other, len(won), len(lost)))
            self.assertEqual(
                won,
                [reservation_operations.get(self.database, one).runtime_us],
            )

    def test_a_change_during_a_migration_is_never_missed(self):
        # Whichever of the two is first, the new host must hear of it.
        (one,) = base.uuids(1)
        here = self.agent('here')
        here.first(one)
        for number in range(8):
            there = self.agent('there%d' % number)
            there.at += number
            there.first(reservations=())
            start = threading.Barrier(2)
            changed = []

            def change(start=start, changed=changed):
                start.wait()
                changed.append(
                    self.change(
                        one, runtime_us=1_000 + len(self.announcer.told)
                    )
                )

            thread = threading.Thread(target=change)
            thread.start()
            start.wait()
            there.send(one)
            thread.join()
            reply = there.send(listed=False)
            known = there._collector.on_overrides(there.host)
            self.assertEqual(reply.overrides_generation, known.generation)
            self.assertGreater(known.generation, 0)
            (override,) = known.overrides
            self.assertEqual(changed[0].generation, override.generation)
            self.assertGreaterEqual(known.generation, override.generation)

# SPDX-License-Identifier: Apache-2.0

"""A thousand batches, many of them sent again and again."""

import collections
import random
import threading

from vsched_api.operations import events
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_lib.contract import messages

BATCHES = 1000
SAMPLES = 3
SEED = 20260715

#: Before the clocks of real services.
PAST = 1_750_000_000.0


class ExactlyOnce:
    """To be mixed into a test case."""

    def test_every_sample_is_stored_once(self):
        many = base.uuids(SAMPLES)
        chance = random.Random(SEED)
        batches = [
            messages.Report(
                base.HOST,
                number,
                PAST + number,
                usage=tuple(base.sample(one, PAST + number) for one in many),
                events=(base.event(PAST + number),),
            )
            for number in range(1, BATCHES + 1)
        ]
        collectors = [self.collector() for _ in range(2)]
        replies = collections.Counter()
        sent = 0
        for number, batch in enumerate(batches):
            # An agent sends in order and goes on once it has an answer. An
            # answer that is lost makes it send again, maybe to the other
            # collector at the same moment; a broker may deliver an old one
            # again whenever it likes.
            again = [batch] * chance.choice((0, 0, 0, 1, 2))
            if number and chance.random() < 0.1:
                again.append(batches[chance.randrange(number)])
            threads = [
                threading.Thread(
                    target=chance.choice(collectors).on_report, args=(one,)
                )
                for one in again
            ]
            for thread in threads:
                thread.start()
            replies[chance.choice(collectors).on_report(batch).duplicate] += 1
            for thread in threads:
                thread.join()
            sent += 1 + len(again)
        self.assertGreater(sent, BATCHES * 1.5)
        self.assertEqual(BATCHES, sum(replies.values()))
        stored = collections.Counter(
            (sample.instance_uuid, sample.at)
            for sample in usage.page(self.database, 10 * BATCHES)
        )
        self.assertEqual(
            {(one, batch.at): 1 for one in many for batch in batches},
            dict(stored),
        )
        self.assertEqual(
            sorted(batch.events[0].uuid for batch in batches),
            sorted(
                event.uuid
                for event in events.page(self.database, 10 * BATCHES)
            ),
        )


class TestExactlyOnceOnSQLite(ExactlyOnce, base.TestCase):
    """In a file."""


class TestExactlyOnceOnPostgreSQL(ExactlyOnce, base.TestCase):
    """On a server."""

    kind = databases.PostgreSQL


class TestExactlyOnceOnMariaDB(ExactlyOnce, base.TestCase):
    """On another server."""

    kind = databases.MariaDB

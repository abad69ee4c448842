# SPDX-License-Identifier: Apache-2.0

"""Deleting what is too old: on every database alike."""

import sqlalchemy as sa

from vsched_api.db import models
from vsched_api.db.queries import usage_folds
from vsched_api.operations import overrides
from vsched_api.operations import reservations
from vsched_api.operations import retention
from vsched_api.operations import rollups
from vsched_api.tests import base
from vsched_api.tests.suites import reservations as reservations_suite

HOUR_S = 3600
DAY_S = 86_400
NOTHING = dict.fromkeys(retention.KINDS, 0)


class Retention:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        for name, value in (
            ('usage_retention_hours', 2),
            ('event_retention_days', 3),
            ('instance_retention_days', 4),
            ('purge_chunk_rows', 3),
        ):
            self.conf.set_override(name, value, 'collector')

    def left(self, table):
        return self.database.read(
            lambda session: session.execute(
                sa.select(sa.func.count()).select_from(table)
            ).scalar_one()
        )

    def purge(self, **more):
        return retention.purge(self.database, self.conf, self.now, **more)

    def test_only_what_is_too_old_goes(self):
        (one,) = base.uuids(1)
        self.agent().first(
            one,
            usage=[
                base.sample(one, self.now - 2 * HOUR_S + offset)
                for offset in range(-10, 5)
            ],
            host_usage=[
                base.host_usage(self.now - 2 * HOUR_S + offset)
                for offset in range(-7, 5)
            ],
            events=[
                base.event(self.now - 3 * DAY_S + offset)
                for offset in range(-3, 2)
            ],
        )
        self.assertEqual(
            {**NOTHING, 'usage': 10, 'host_time': 7, 'events': 3}, self.purge()
        )
        self.assertEqual(5, self.left(models.UsageSecond))
        self.assertEqual(5, self.left(models.HostTimeSample))
        self.assertEqual(2, self.left(models.Event))
        self.assertEqual(1, self.left(models.Reservation))
        self.assertEqual(0, sum(self.purge().values()))

    def test_sums_are_kept_for_longer_than_samples(self):
        for name, value in (
            ('usage_minute_retention_days', 1),
            ('usage_hour_retention_days', 10),
        ):
            self.conf.set_override(name, value, 'collector')
        (one,) = base.uuids(1)
        hour = self.now // HOUR_S * HOUR_S
        # Longer ago than anything is kept, than minutes, than samples.
        moments = [
            hour - days * DAY_S - hours * HOUR_S
            for days, hours in (
                (10, 0),
                (9, 0),
                (1, 0),
                (0, 23),
                (0, 3),
                (0, 1),
            )
        ]
        self.agent().first(
            one,
            usage=[base.sample(one, at) for at in moments],
            host_usage=[base.host_usage(at) for at in moments],
        )
        self.assertEqual(
            {
                **NOTHING,
                'usage': 5,
                'host_time': 5,
                'usage_minutes': 3,
                'host_usage_minutes': 3,
                'host_time_minutes': 3,
                'usage_hours': 1,
                'host_usage_hours': 1,
                'host_time_hours': 1,
            },
            self.purge(),
        )
        for table in (
            models.UsageBucket,
            models.HostUsageBucket,
            models.HostTimeBucket,
        ):
            self.assertEqual(3 + 5, self.left(table))
        self.assertEqual(NOTHING, self.purge())

    def test_a_sample_that_is_not_summed_is_not_deleted(self):
        (one,) = base.uuids(1)
        self.agent().first(
            one,
            usage=[base.sample(one, self.now - DAY_S)],
            host_usage=[base.host_usage(self.now - DAY_S)],
        )

        def delete():
            return [
                self.database.write(
                    lambda session, kind=kind: usage_folds.delete_before(
                        session, kind, self.now, 10
                    )
                )
                for kind in (models.UsageSecond, models.HostTimeSample)
            ]

        self.assertEqual([0, 0], delete())
        rollups.fold(self.database, 10)
        self.assertEqual([1, 1], delete())

    def test_an_instance_goes_with_all_that_is_its(self):
        gone, stays = base.uuids(2)
        agent = self.agent()
        agent.first(gone, stays)
        for one in (gone, stays):
            reservations.change(
                self.database,
                reservations_suite.Announcer(),
                overrides.Change(one, self.now),
                {'runtime_us': 6_000},
            )
        agent.at = self.now
        agent.send(stays)
        self.now += 4 * DAY_S
        self.assertEqual(0, self.purge()['instances'])
        self.now += 1
        self.assertEqual(
            {**NOTHING, 'instances': 1, 'overrides': 1}, self.purge()
        )
        self.assertEqual(
            [stays],
            [
                one.instance_uuid
                for one in reservations.page(self.database, 10)
            ],
        )
        self.assertEqual(1, self.left(models.Override))

    def test_it_can_be_stopped_between_chunks(self):
        (one,) = base.uuids(1)
        self.agent().first(
            one,
            usage=[
                base.sample(one, self.now - DAY_S + second)
                for second in range(10)
            ],
        )
        # First whether to sum them.
        asked = iter([False, False, False, True])
        self.assertEqual(
            6, self.purge(stopped=lambda: next(asked, True))['usage']
        )
        self.assertEqual(4, self.left(models.UsageSecond))

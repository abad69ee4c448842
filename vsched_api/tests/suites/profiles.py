# SPDX-License-Identifier: Apache-2.0

"""Storing and reading profiles: on every database alike."""

import dataclasses

import sqlalchemy as sa

from vsched_api.db import models
from vsched_api.operations import errors
from vsched_api.operations import events
from vsched_api.operations import profiles
from vsched_api.operations import retention
from vsched_api.tests import base
from vsched_api.tests.suites import jobs
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import profiles as contract
from vsched_lib.tests import error_profiles
from vsched_lib.tests import overhead_profiles

Code = contract_errors.Code
LIVE = contract.ProfileSource.LIVE


class Profiles:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        self.node = self.agent()
        self.node.first()

    def profile(self, **changes):
        """One with a few points, each unlike the others."""
        return error_profiles.full(
            **{
                'windows': 40,
                'shares_ppm': (10_000, 500_000),
                'uuid': base.uuids(1)[0],
                'features': {'HRTICK': False, 'ü': 1},
                'notes': ('cfs: not measured',),
                **changes,
            }
        )

    def send(self, *found, agent=None):
        return (agent or self.node).send(listed=False, error_profiles=found)

    def newest(self, host=base.HOST, **filters):
        return profiles.newest(self.database, host, **filters)

    def count(self, table):
        return self.database.read(
            lambda session: session.execute(
                sa.select(sa.func.count()).select_from(table)
            ).scalar_one()
        )

    def refused(self, kind, code, act, *args, **more):
        problem = self.assertRaises(kind, act, *args, **more)
        self.assertEqual(code, problem.code)
        return problem.detail

    def test_a_profile_comes_back_as_it_was_told(self):
        told = self.profile()
        self.assertFalse(self.send(told).resync)
        self.assertEqual([told], self.newest())
        self.assertEqual(8, len(told.points))

    def test_a_repeated_profile_is_one(self):
        told = self.profile()
        changed = dataclasses.replace(told, version=9, points=())
        self.send(told, told)
        self.send(changed)
        self.assertEqual([told], self.newest())
        self.assertEqual(1, self.count(models.ErrorProfile))
        self.assertEqual(8, self.count(models.ErrorPoint))

    def test_the_newest_of_each_source_is_the_one_stored_last(self):
        # Neither a clock that was ahead nor a count that began anew hides
        # what came later.
        ahead = self.profile(version=7, finished_at=base.NOW + 50)
        live = self.profile(version=1, source=LIVE)
        last = self.profile(version=1)
        self.send(ahead, live)
        self.send(last)
        self.assertEqual([last, live], self.newest())
        self.assertEqual([live], self.newest(source='live'))
        self.assertEqual([ahead], self.newest(version=7))
        self.assertEqual([last, live], self.newest(version=1))
        self.assertEqual([last], self.newest(version=1, source='benchmark'))
        detail = self.refused(
            errors.NotFound,
            Code.PROFILE_NOT_FOUND,
            self.newest,
            version=2,
            source='live',
        )
        self.assertEqual(
            'host node1 has no error profile of source live of version 2',
            detail,
        )

    def test_hosts_have_profiles_of_their_own(self):
        other = self.agent('other')
        other.first()
        mine, others = self.profile(), self.profile()
        self.send(others, agent=other)
        self.assertEqual([], self.newest())
        self.send(mine)
        self.assertEqual([others], self.newest('other'))
        self.assertEqual([mine], self.newest())
        for act in (profiles.newest, profiles.page):
            self.refused(
                errors.NotFound,
                Code.HOST_NOT_FOUND,
                act,
                self.database,
                'nowhere',
                10,
            )

    def test_pages(self):
        told = [
            dataclasses.replace(
                self.profile(version=number, source=source), points=()
            )
            for number in (1, 2)
            for source in contract.ProfileSource
        ]
        self.send(*told)
        told.reverse()

        def found(limit=10, **more):
            return profiles.page(self.database, base.HOST, limit, **more)

        self.assertEqual(told, found())
        self.assertEqual(told[:2], found(2))
        self.assertEqual(told[2:], found(2, marker=told[1].uuid))
        self.assertEqual(told[::2], found(source='live'))
        other = self.agent('other')
        other.first()
        stranger = self.profile()
        self.send(stranger, agent=other)
        for marker in (stranger.uuid, base.uuids(1)[0]):
            self.refused(
                errors.Invalid, Code.BAD_REQUEST, found, marker=marker
            )

    def test_pages_have_no_points(self):
        self.send(self.profile())
        (one,) = profiles.page(self.database, base.HOST, 10)
        self.assertEqual((), one.points)

    def test_odd_texts_are_stored(self):
        self.send(
            self.profile(
                kernel='k\0' * 300,
                notes=('n\ud800' * 9000,) * 50,
                features={'\0': '\ud800'},
            )
        )
        (one,) = self.newest()
        self.assertEqual(
            (255, 50, 4000),
            (len(one.kernel), len(one.notes), len(one.notes[0])),
        )

    def test_malformed_profiles_are_answered(self):
        good = self.profile()
        point = good.points[0]
        for changes in (
            {'uuid': 'x'},
            {'version': 2**63},
            {'cpus': -1},
            {'load': float('nan')},
            {'started_at': float('inf')},
            {'features': {'x': float('nan')}},
            *(
                {'points': (dataclasses.replace(point, **values),)}
                for values in (
                    {'n': -1},
                    {'mean_ppm': 2**63},
                    {'backend': 'b' * 65},
                    {'lowest_ppm': ()},
                    {'largest_ppm': (2**63,)},
                    {'counts': (0,) * 1001},
                )
            ),
        ):
            reply = self.send(dataclasses.replace(good, **changes))
            self.assertTrue(reply.resync, changes)
        self.assertEqual(
            {Code.REPORT_REJECTED},
            {told.code for told in events.page(self.database, 100)},
        )
        self.assertEqual(0, self.count(models.ErrorProfile))

    def test_the_newest_of_each_host_and_source_are_kept(self):
        for name, value in (('keep_profiles', 2), ('purge_chunk_rows', 100)):
            self.conf.set_override(name, value, 'collector')
        other = self.agent('other')
        other.first()
        mine = [self.profile() for _ in range(4)]
        live = [self.profile(source=LIVE) for _ in range(3)]
        self.send(*mine, *live)
        self.send(self.profile(), agent=other)
        self.assertEqual(
            3, retention.purge(self.database, self.conf, self.now)['profiles']
        )
        self.assertEqual(
            [one.uuid for one in (live[2], live[1], mine[3], mine[2])],
            [one.uuid for one in profiles.page(self.database, base.HOST, 10)],
        )
        self.assertEqual(5 * 8, self.count(models.ErrorPoint))
        self.assertEqual(
            0, retention.purge(self.database, self.conf, self.now)['profiles']
        )

    def test_a_table(self):
        self.send(self.profile(source=LIVE))
        self.refused(
            errors.NotFound,
            Code.PROFILE_NOT_FOUND,
            profiles.csv,
            self.database,
            base.HOST,
            'benchmark',
        )
        rows = profiles.csv(self.database, base.HOST, 'live').splitlines()
        self.assertEqual(1 + 8, len(rows))
        self.assertTrue(rows[0].startswith('backend,period_us,'))

    def test_measuring_is_a_job(self):
        announcer = jobs.Announcer()

        def measure(**parameters):
            return profiles.measure(
                self.database, announcer, base.HOST, parameters, self.now
            )

        self.refused(
            errors.Invalid, Code.BAD_REQUEST, measure, quick=True, seconds=5
        )
        job = measure(
            quick=False, seconds=5.0, periods_us=[1e4], shares_pct=[0.5, 5]
        )
        self.assertEqual('profile-error', job.kind)
        self.assertEqual(
            '{"quick": False, "seconds": 5, "periods_us": [10000], '
            '"shares_pct": [0.5, 5]}',
            str(job.parameters).replace("'", '"'),
        )
        self.assertEqual([(base.HOST, 1)], announcer.told)

    # What work for I/O costs

    def overhead(self, **changes):
        return overhead_profiles.profile(
            **{
                'uuid': base.uuids(1)[0],
                'features': {'disk': 'direct'},
                **changes,
            }
        )

    def tell(self, *found):
        return self.node.send(listed=False, overhead_profiles=found)

    def overheads(self, **filters):
        return profiles.newest_overhead(self.database, base.HOST, **filters)

    def test_an_overhead_profile_comes_back_as_it_was_told(self):
        told = self.overhead()
        self.assertFalse(self.tell(told).resync)
        self.tell(dataclasses.replace(told, version=9))
        self.assertEqual([told], self.overheads())
        self.assertEqual([], self.newest())

    def test_the_newest_overhead_profile_of_each_source(self):
        first, live = self.overhead(), self.overhead(source=LIVE)
        last = self.overhead(version=1)
        self.tell(first, live, last)
        self.assertEqual([last, live], self.overheads())
        self.assertEqual([live], self.overheads(source='live'))
        self.assertEqual(
            [first], self.overheads(source='benchmark', version=3)
        )
        detail = self.refused(
            errors.NotFound, Code.PROFILE_NOT_FOUND, self.overheads, version=2
        )
        self.assertEqual(
            'host node1 has no overhead profile of version 2', detail
        )
        self.assertEqual(
            [
                dataclasses.replace(one, points=())
                for one in (last, live, first)
            ],
            profiles.page_overhead(self.database, base.HOST, 10),
        )
        self.assertEqual(
            [live.uuid],
            [
                one.uuid
                for one in profiles.page_overhead(
                    self.database, base.HOST, 1, marker=last.uuid
                )
            ],
        )

    def test_malformed_overhead_profiles_are_answered(self):
        good = self.overhead()
        for changes in (
            {'uuid': 'x'},
            {'n': -1},
            {'r2': float('nan')},
            {'residual_ns': float('inf')},
            {'points': (overhead_profiles.point(wakeups=-1),)},
            {'points': (overhead_profiles.point('x' * 65),)},
            {'points': good.points * 501},
        ):
            reply = self.tell(dataclasses.replace(good, **changes))
            self.assertTrue(reply.resync, changes)
        self.assertEqual(0, self.count(models.OverheadProfile))

    def test_the_newest_overhead_profiles_are_kept(self):
        for name, value in (('keep_profiles', 2), ('purge_chunk_rows', 100)):
            self.conf.set_override(name, value, 'collector')
        self.tell(*(self.overhead() for _ in range(4)))
        self.send(self.profile())
        gone = retention.purge(self.database, self.conf, self.now)
        self.assertEqual((0, 2), (gone['profiles'], gone['overhead_profiles']))
        self.assertEqual(2, self.count(models.OverheadProfile))

    def test_a_table_of_overhead(self):
        self.refused(
            errors.NotFound,
            Code.PROFILE_NOT_FOUND,
            profiles.overhead_table,
            self.database,
            base.HOST,
            'benchmark',
        )
        self.tell(self.overhead())
        rows = profiles.overhead_table(
            self.database, base.HOST, 'benchmark'
        ).splitlines()
        self.assertEqual(3, len(rows))
        self.assertTrue(rows[1].startswith('net-rx,1000,1,64,'))

    def test_measuring_overhead_is_a_job_of_its_own(self):
        announcer = jobs.Announcer()
        profiles.measure(self.database, announcer, base.HOST, {}, self.now)
        job = profiles.measure_overhead(
            self.database, announcer, base.HOST, {'quick': True}, self.now
        )
        self.assertEqual('profile-overhead', job.kind)
        self.assertEqual({'quick': True}, job.parameters)
        self.refused(
            errors.Conflict,
            Code.JOB_EXISTS,
            profiles.measure_overhead,
            self.database,
            announcer,
            base.HOST,
            {},
            self.now,
        )

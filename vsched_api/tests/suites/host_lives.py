# SPDX-License-Identifier: Apache-2.0

"""Clocks of hosts, and hosts that go: on every database alike."""

import sqlalchemy as sa

from vsched_api.cmd import manage
from vsched_api.db import models
from vsched_api.operations import host_deletion
from vsched_api.operations import retention
from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_lib.contract import balloons
from vsched_lib.contract import errors
from vsched_lib.tests import balloon_reports
from vsched_lib.tests import error_profiles
from vsched_lib.tests import overhead_profiles

DAY_S = 86_400.0
#: The last second that a message can name.
YEAR_9999 = 253_402_297_200.0


class Clocks:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        (self.one,) = base.uuids(1)
        self.http = self.client()
        self.node = self.agent()

    def get(self, path, name):
        answer = self.http.get(path)
        self.assertEqual(200, answer.status_code, answer.text)
        return answer.json[name]

    def times(self):
        """Every time that is stored of hosts, by its column."""
        found = {}
        for kind in models.Base.__subclasses__():
            for column in kind.__table__.columns:
                if isinstance(column.type, sa.Double) and (
                    column.name.endswith('_at')
                    or column.name in ('at', 'since')
                ):
                    values = self.database.read(
                        lambda session, column=column: (
                            session.execute(sa.select(column)).scalars().all()
                        )
                    )
                    for value in values:
                        if value is not None:
                            found.setdefault(str(column), []).append(value)
        return found

    def test_nothing_is_stored_in_the_future(self):
        for sent_at in (None, self.now, YEAR_9999):
            for at in (self.now + 60, YEAR_9999):
                change = balloon_reports.change(
                    self.one, started_at=at, ended_at=at
                )
                self.node.at = at
                self.node.first(
                    self.one,
                    sent_at=sent_at,
                    reservations=(
                        base.reservation(self.one, since=at, attested_at=at),
                    ),
                    usage=(base.sample(self.one, at),),
                    host_usage=(base.host_usage(at),),
                    events=(base.event(at),),
                    balloons=(
                        balloon_reports.report(
                            self.one,
                            since=at,
                            state=balloons.BalloonState.KEPT,
                        ),
                    ),
                    balloon_changes=(change,),
                    error_profiles=(
                        error_profiles.full(
                            uuid=change.uuid, started_at=at, finished_at=at
                        ),
                    ),
                    overhead_profiles=(
                        overhead_profiles.profile(
                            uuid=change.uuid, started_at=at, finished_at=at
                        ),
                    ),
                )
        found = self.times()
        self.assertLess(10, len(found))
        for name, values in found.items():
            # Seconds in which samples end are whole.
            self.assertLessEqual(max(values), self.now + 6, name)

    def test_what_is_to_come_is_within_a_year(self):
        def not_before():
            return self.database.read(
                lambda session: session.execute(
                    sa.select(models.Balloon.not_before)
                ).scalar_one()
            )

        for sent_at, at, wanted in (
            (self.now, self.now + 60, self.now + 60),
            (self.now, YEAR_9999, self.now + 366 * DAY_S),
            (None, YEAR_9999, self.now + 366 * DAY_S),
            # A pause is as long as its host meant it to be.
            (YEAR_9999 - 60, YEAR_9999, self.now + 60),
        ):
            self.node.first(
                self.one,
                sent_at=sent_at,
                balloons=(balloon_reports.report(self.one, not_before=at),),
            )
            self.assertAlmostEqual(wanted, not_before(), places=3)

    def test_what_comes_later_is_on_top(self):
        self.node.at = YEAR_9999
        self.node.send(
            listed=False,
            sent_at=YEAR_9999,
            events=(base.event(YEAR_9999, detail='ahead'),),
        )
        self.now += 10
        other = self.agent('node2')
        other.at = self.now
        other.send(
            listed=False, events=(base.event(self.now, detail='later'),)
        )
        told = [
            (one['detail'], one['figures'].get('host_at'))
            for one in self.get('/v1/events', 'events')
            if one['code'] == 'vsched.agent.started'
        ]
        self.assertEqual([('later', None), ('ahead', YEAR_9999)], told)

    def test_intervals_stay_as_long_as_they_were(self):
        ahead_s = 400 * DAY_S
        self.node.at = self.now + ahead_s
        self.node.send(
            listed=False,
            sent_at=self.now + ahead_s,
            usage=[
                base.sample(self.one, self.now + ahead_s - age)
                for age in (3, 2, 1)
            ],
        )
        ends = [one['at'] for one in self.get('/v1/usage', 'usage')]
        self.assertEqual(3, len(set(ends)))

    def test_the_difference_is_told(self):
        def skew():
            return self.get('/v1/hosts/node1', 'host')['clock_skew_s']

        def codes():
            return [one['code'] for one in self.get('/v1/events', 'events')]

        self.node.send(listed=False)
        self.assertIsNone(skew())
        # Full reports, and samples that share a transaction.
        for ahead_s, code in (
            (10, None),
            (100, 'vsched.clock.skewed'),
            (-0.5, 'vsched.clock.right'),
            (-500, 'vsched.clock.skewed'),
        ):
            sent_at = self.now + ahead_s
            for parts in (
                {'usage': (base.sample(self.one),)},
                {'events': (base.event(),)},
            ):
                self.node.send(listed=False, sent_at=sent_at, **parts)
                self.assertAlmostEqual(ahead_s, skew())
            # Once an hour.
            self.now += 3600
            if code is not None:
                self.assertEqual(
                    code, next(one for one in codes() if 'clock' in one)
                )
        self.assertEqual(
            [
                'vsched.clock.skewed',
                'vsched.clock.right',
                'vsched.clock.skewed',
            ],
            [one for one in codes() if 'clock' in one],
        )


class Deletion:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        self.one, self.two = base.uuids(2)
        self.http = self.client()
        self.node, self.other = self.agent('node1'), self.agent('node2')
        self.fill(self.node)
        self.other.first(self.two)

    def fill(self, agent):
        change = balloon_reports.change(self.one)
        agent.first(
            self.one,
            usage=(base.sample(self.one),),
            host_usage=(base.host_usage(),),
            events=(base.event(),),
            balloons=(balloon_reports.report(self.one),),
            balloon_changes=(change,),
            error_profiles=(error_profiles.full(uuid=change.uuid),),
            overhead_profiles=(overhead_profiles.profile(uuid=change.uuid),),
        )

    def delete(self, status=204, query=''):
        answer = self.http.delete('/v1/hosts/node1' + query)
        self.assertEqual(status, answer.status_code, answer.text)
        return answer.json['errors'][0] if status != 204 else None

    def purge(self):
        retention.purge(self.database, self.conf, self.now)

    def rows(self):
        """Tables that have something of the first host."""
        number = self.database.read(
            lambda session: (
                session.execute(
                    sa.select(models.Host.id).order_by(models.Host.id)
                )
                .scalars()
                .first()
            )
        )
        found = {}
        for kind in models.Base.__subclasses__():
            if 'host_id' in kind.__table__.columns:
                count = self.database.read(
                    lambda session, kind=kind: session.execute(
                        sa.select(sa.func.count()).where(
                            kind.__table__.c.host_id == number
                        )
                    ).scalar()
                )
                if count:
                    found[kind.__tablename__] = count
        return found

    def test_what_is_in_use_stays(self):
        problem = self.delete(409)
        self.assertEqual(errors.Code.HOST_IN_USE, problem['code'])
        self.assertIn('reports', problem['detail'])
        self.now += DAY_S
        problem = self.delete(409)
        self.assertIn('1 instances', problem['detail'])
        self.assertIn('force=true', problem['detail'])
        self.delete(409, '?force=false')
        # Evacuated: another host lists it as well.
        self.other.first(self.one, self.two)
        self.delete()
        self.assertEqual(errors.Code.HOST_NOT_FOUND, self.delete(404)['code'])

    def test_all_that_is_known_goes(self):
        self.purge()
        self.assertLess(9, len(self.rows()))
        self.now += DAY_S
        version = self.http.get('/v1/snapshot').json['version']
        self.delete(query='?force=true')
        # At once, as far as anybody can see.
        self.assertEqual(
            ['node2'],
            [one['name'] for one in self.http.get('/v1/hosts').json['hosts']],
        )
        self.assertEqual(404, self.http.get('/v1/hosts/node1').status_code)
        for path in (
            '/v1/events',
            '/v1/usage',
            '/v1/usage?of=hosts',
            '/v1/usage/totals',
            '/v1/reservations',
            '/v1/instances',
            '/v1/jobs',
            '/v1/balloons',
            '/metrics',
        ):
            self.assertNotIn(b'deleted', self.http.get(path).data, path)
        told = self.http.get('/v1/snapshot?since=%d' % version).json
        self.assertEqual((['node1'], []), (told['removed'], told['hosts']))
        self.assertEqual(
            ['node2'],
            [
                one['name']
                for one in self.http.get('/v1/snapshot').json['hosts']
            ],
        )
        # In the background.
        self.purge()
        self.assertEqual(
            set(), set(self.rows()) - {'snapshot_hosts', 'usage_folds'}
        )
        self.now += 8 * DAY_S
        self.purge()
        self.assertEqual(
            ['node2'],
            self.database.read(
                lambda session: (
                    session.execute(sa.select(models.Host.name))
                    .scalars()
                    .all()
                )
            ),
        )

    def test_one_that_reports_again_is_new(self):
        self.now += DAY_S
        version = self.http.get('/v1/snapshot').json['version']
        self.delete(query='?force=true')
        reply = self.node.send(listed=False)
        self.assertTrue(reply.resync)
        self.node.first(self.one)
        told = self.http.get('/v1/snapshot?since=%d' % version).json
        self.assertEqual([], told['removed'])
        self.assertEqual(['node1'], [one['name'] for one in told['hosts']])
        self.purge()
        self.now += 8 * DAY_S
        self.purge()
        self.assertEqual(200, self.http.get('/v1/hosts/node1').status_code)

    def test_the_command(self):
        options = databases.write(
            self,
            '[database]\nconnection = %s\n' % (self.conf.database.connection),
        )
        delete = ('--config-file', options, 'host', 'delete')
        # The command's clock is the real one, and behind the tests'.
        self.database.write(
            lambda session: session.execute(
                sa.update(models.Host).values(received_at=1.0)
            )
        )
        self.assertEqual(1, manage.main([*delete, 'node1']))
        self.assertEqual(0, manage.main([*delete, 'node1', '--force']))
        self.assertEqual(1, manage.main([*delete, 'node1', '--force']))

    def test_without_nova_nobody_is_deleted(self):
        self.now += 400 * DAY_S
        self.assertEqual(
            0, host_deletion.delete_absent(self.database, self.conf, self.now)
        )
        self.assertEqual(2, len(self.http.get('/v1/hosts').json['hosts']))

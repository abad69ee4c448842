# SPDX-License-Identifier: Apache-2.0

"""Ordering jobs and hearing of them: on every database alike."""

import threading

import sqlalchemy as sa

from vsched_api.db import models
from vsched_api.operations import errors
from vsched_api.operations import events
from vsched_api.operations import jobs
from vsched_api.operations import retention
from vsched_api.tests import base
from vsched_api.tests.suites import reservations
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import messages

Code = contract_errors.Code
State = messages.JobState
PROFILE = messages.JobKind.PROFILE_ERROR
DAY_S = 86_400


class Announcer(reservations.Announcer):
    """Keeps what agents would have been told."""

    def jobs_changed(self, host, generation):
        self.told.append((host, generation))


class Jobs:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        self.announcer = Announcer()
        self.node = self.agent()
        self.node.first()

    def order(self, host=base.HOST, **parameters):
        return jobs.create(
            self.database, self.announcer, host, PROFILE, parameters, self.now
        )

    def cancel(self, job):
        return jobs.cancel(self.database, self.announcer, job.uuid, self.now)

    def resume(self, job):
        return jobs.resume(self.database, self.announcer, job.uuid, self.now)

    def tell(
        self, job, state, attempt=1, progress_ppm=0, detail='', agent=None
    ):
        return (agent or self.node).send(
            listed=False,
            jobs=(
                messages.JobReport(
                    job.uuid, attempt, state, progress_ppm, base.NOW, detail
                ),
            ),
        )

    def stored(self, job):
        return jobs.get(self.database, job.uuid)

    def orders(self, host=base.HOST):
        return self.collector().on_jobs(host)

    def refused(self, kind, code, act, *args, **more):
        problem = self.assertRaises(kind, act, *args, **more)
        self.assertEqual(code, problem.code)
        return problem.detail

    def test_an_order_gets_to_the_agent(self):
        job = self.order(quick=True, shares_pct=[0.5, 10])
        self.assertEqual(
            (
                base.HOST,
                'profile-error',
                'run',
                'queued',
                1,
                0,
                '',
                self.now,
                self.now,
            ),
            (
                job.host,
                job.kind,
                job.wanted,
                job.state,
                job.attempt,
                job.progress_ppm,
                job.detail,
                job.created_at,
                job.updated_at,
            ),
        )
        self.assertEqual([(base.HOST, 1)], self.announcer.told)
        self.assertEqual(
            messages.Jobs(
                1,
                (
                    messages.JobOrder(
                        job.uuid,
                        PROFILE,
                        messages.JobWanted.RUN,
                        1,
                        {'quick': True, 'shares_pct': [0.5, 10]},
                    ),
                ),
            ),
            self.orders(),
        )
        self.assertEqual(job, self.stored(job))

    def test_every_reply_carries_the_generation(self):
        self.order()
        collector = self.collector()
        for number, parts in enumerate(
            ({}, {'usage': (base.sample('x'),)}), 10
        ):
            report = messages.Report(base.HOST, number, base.NOW, **parts)
            for duplicate in (False, True):
                reply = collector.on_report(report)
                self.assertEqual(
                    (duplicate, 1), (reply.duplicate, reply.jobs_generation)
                )

    def test_a_host_has_a_generation_of_its_own(self):
        other = self.agent('other')
        other.first()
        self.order()
        self.assertEqual(0, other.send(listed=False).jobs_generation)
        self.assertEqual(messages.Jobs(0), self.orders('other'))
        self.assertEqual(messages.Jobs(0), self.orders('nowhere'))

    def test_a_job_runs_to_its_end(self):
        job = self.order()
        self.now += 5
        self.tell(job, State.RUNNING, progress_ppm=250_000, detail='10 %')
        found = self.stored(job)
        self.assertEqual(
            ('running', 250_000, '10 %', self.now),
            (found.state, found.progress_ppm, found.detail, found.updated_at),
        )
        self.tell(job, State.DONE, progress_ppm=1_000_000, detail='36 points')
        self.assertEqual('done', self.stored(job).state)
        self.assertEqual(messages.Jobs(1), self.orders())

    def test_how_long_it_will_take(self):
        job = self.order()
        self.assertIsNone(job.started_at)
        self.now += 5
        self.tell(job, State.RUNNING)
        began = self.now
        found = self.stored(job)
        self.assertEqual(
            (began, None), (found.started_at, found.eta_s(self.now))
        )
        # What it begins with is no measure of its speed.
        self.now += 1
        self.tell(job, State.RUNNING, progress_ppm=400_000)
        self.assertIsNone(self.stored(job).eta_s(self.now))
        self.now += 20
        self.tell(job, State.RUNNING, progress_ppm=500_000)
        found = self.stored(job)
        self.assertEqual(began, found.started_at)
        self.assertAlmostEqual(100, found.eta_s(self.now))
        self.assertAlmostEqual(93, found.eta_s(self.now + 7))
        self.assertEqual(0, found.eta_s(self.now + 500))
        # A clock that was set back makes it no longer.
        self.assertAlmostEqual(100, found.eta_s(self.now - 50))
        self.tell(job, State.DONE, progress_ppm=1_000_000)
        found = self.stored(job)
        self.assertEqual(
            (began, None), (found.started_at, found.eta_s(self.now))
        )

    def test_another_run_is_measured_anew(self):
        job = self.order()
        for progress_ppm in (0, 200_000, 600_000):
            self.tell(job, State.RUNNING, progress_ppm=progress_ppm)
            self.now += 10
        began = self.stored(job).started_at
        self.assertIsNotNone(self.stored(job).eta_s(self.now))
        # The next agent goes on with the attempt.
        self.tell(job, State.RUNNING, progress_ppm=0)
        self.assertIsNone(self.stored(job).eta_s(self.now))
        self.tell(job, State.RUNNING, progress_ppm=600_000)
        self.now += 10
        self.tell(job, State.RUNNING, progress_ppm=700_000)
        found = self.stored(job)
        self.assertAlmostEqual(30, found.eta_s(self.now))
        self.assertEqual(began, found.started_at)
        self.tell(job, State.FAILED, progress_ppm=700_000)
        resumed = self.resume(job)
        self.assertEqual(
            (None, None), (resumed.started_at, resumed.progress_from_ppm)
        )
        # An attempt that this database knows nothing of.
        self.tell(job, State.RUNNING, attempt=2, progress_ppm=1)
        self.now += 10
        self.tell(job, State.RUNNING, attempt=5, progress_ppm=0)
        self.assertEqual(self.now, self.stored(job).started_at)

    def test_a_finished_job_stays_finished(self):
        job = self.order()
        for state in (State.FAILED, State.RUNNING, State.DONE):
            self.tell(job, state)
            self.assertEqual('failed', self.stored(job).state)

    def test_several_reports_of_a_batch_count_in_their_order(self):
        job = self.order()
        self.node.send(
            listed=False,
            jobs=[
                messages.JobReport(job.uuid, 1, state, progress_ppm, base.NOW)
                for state, progress_ppm in (
                    (State.RUNNING, 0),
                    (State.RUNNING, 500_000),
                    (State.DONE, 1_000_000),
                    (State.RUNNING, 600_000),
                )
            ],
        )
        found = self.stored(job)
        self.assertEqual(
            ('done', 1_000_000), (found.state, found.progress_ppm)
        )

    def test_an_older_attempt_says_nothing(self):
        job = self.order()
        self.tell(job, State.FAILED, progress_ppm=400_000, detail='why')
        resumed = self.resume(job)
        self.assertEqual(
            (2, 'queued', 'run', 400_000, ''),
            (
                resumed.attempt,
                resumed.state,
                resumed.wanted,
                resumed.progress_ppm,
                resumed.detail,
            ),
        )
        self.tell(job, State.DONE, attempt=1)
        self.assertEqual('queued', self.stored(job).state)
        self.tell(job, State.RUNNING, attempt=2)
        self.assertEqual('running', self.stored(job).state)

    def test_an_attempt_that_is_ahead_counts(self):
        # The database was restored.
        job = self.order()
        self.tell(job, State.DONE, attempt=3)
        found = self.stored(job)
        self.assertEqual(('done', 3), (found.state, found.attempt))

    def test_what_is_told_of_unknown_jobs_is_ignored(self):
        job = self.order()
        stranger = self.agent('other')
        stranger.first()
        self.assertFalse(self.tell(job, State.DONE, agent=stranger).resync)
        self.node.send(
            listed=False,
            jobs=(
                messages.JobReport(
                    base.uuids(1)[0], 1, State.DONE, 0, base.NOW
                ),
            ),
        )
        self.assertEqual('queued', self.stored(job).state)

    def test_odd_reports_are_stored(self):
        job = self.order()
        self.tell(
            job,
            State.RUNNING,
            progress_ppm=1_000_000,
            detail='d\0\ud800' * 9000,
        )
        found = self.stored(job)
        self.assertEqual(
            (1_000_000, 4000), (found.progress_ppm, len(found.detail))
        )
        for bad in (-1, 1_000_001, 2**70):
            self.tell(job, State.RUNNING, progress_ppm=bad)
        self.assertEqual(found, self.stored(job))

    def test_malformed_reports_are_answered(self):
        job = self.order()
        for changes in ({'uuid': 'x'}, {'attempt': -1}, {'attempt': 2**63}):
            values = {'uuid': job.uuid, 'attempt': 1, **changes}
            self.assertTrue(
                self.node.send(
                    listed=False,
                    jobs=(
                        messages.JobReport(
                            **values,
                            state=State.DONE,
                            progress_ppm=0,
                            at=base.NOW,
                        ),
                    ),
                ).resync
            )
        self.assertEqual('queued', self.stored(job).state)
        self.assertEqual(
            {Code.REPORT_REJECTED},
            {told.code for told in events.page(self.database, 10)},
        )

    def test_one_of_a_kind_at_a_time(self):
        job = self.order()
        detail = self.refused(errors.Conflict, Code.JOB_EXISTS, self.order)
        self.assertIn(job.uuid, detail)
        # Nor did that change the generation.
        self.assertEqual(1, self.orders().generation)
        self.tell(job, State.DONE)
        self.assertNotEqual(job.uuid, self.order().uuid)

    def test_of_parallel_orders_one_is_taken(self):
        threads, taken, refused = [], [], []
        start = threading.Barrier(6)
        self.assertIsNotNone(self.database)

        def order():
            start.wait()
            try:
                taken.append(self.order())
            except errors.Conflict as problem:
                refused.append(problem)

        for _ in range(6):
            threads.append(threading.Thread(target=order))
            threads[-1].start()
        for thread in threads:
            thread.join()
        self.assertEqual((1, 5), (len(taken), len(refused)))
        self.assertEqual(1, len(self.orders().orders))

    def test_a_host_nobody_knows(self):
        self.refused(
            errors.NotFound, Code.HOST_NOT_FOUND, self.order, 'nowhere'
        )

    def test_the_agent_confirms_a_cancellation(self):
        job = self.order()
        cancelled = self.cancel(job)
        self.assertEqual(
            ('cancel', 'queued'), (cancelled.wanted, cancelled.state)
        )
        (order,) = self.orders().orders
        self.assertEqual(
            (job.uuid, messages.JobWanted.CANCEL), (order.uuid, order.wanted)
        )
        # Asked once more, the agent is told once more.
        self.cancel(job)
        self.assertEqual(
            [(base.HOST, 1), (base.HOST, 2), (base.HOST, 3)],
            self.announcer.told,
        )
        detail = self.refused(
            errors.Conflict, Code.JOB_CHANGING, self.resume, job
        )
        self.assertIn('has not confirmed', detail)
        self.tell(job, State.CANCELLED)
        self.assertEqual((), self.orders().orders)
        self.refused(errors.Conflict, Code.JOB_FINISHED, self.cancel, job)
        self.assertEqual(2, self.resume(job).attempt)
        (order,) = self.orders().orders
        self.assertEqual(
            (2, messages.JobWanted.RUN), (order.attempt, order.wanted)
        )

    def test_what_runs_or_is_done_is_not_resumed(self):
        job = self.order()
        self.assertEqual(1, self.resume(job).attempt)
        self.tell(job, State.RUNNING)
        self.assertEqual('running', self.resume(job).state)
        self.tell(job, State.DONE)
        self.refused(errors.Conflict, Code.JOB_FINISHED, self.resume, job)
        self.refused(errors.Conflict, Code.JOB_FINISHED, self.cancel, job)

    def test_a_resumed_job_is_one_of_a_kind_as_well(self):
        job = self.order()
        self.tell(job, State.FAILED)
        other = self.order()
        detail = self.refused(
            errors.Conflict, Code.JOB_EXISTS, self.resume, job
        )
        self.assertIn(other.uuid, detail)

    def test_a_job_nobody_knows(self):
        (unknown,) = base.uuids(1)
        for act in (jobs.cancel, jobs.resume):
            self.refused(
                errors.NotFound,
                Code.JOB_NOT_FOUND,
                act,
                self.database,
                self.announcer,
                unknown,
                self.now,
            )
        self.refused(
            errors.NotFound,
            Code.JOB_NOT_FOUND,
            jobs.get,
            self.database,
            unknown,
        )

    def test_pages(self):
        other = self.agent('other')
        other.first()
        first = self.order()
        self.tell(first, State.FAILED)
        second = self.order()
        third = self.order('other')

        def found(limit=10, marker=None, **filters):
            return [
                job.uuid
                for job in jobs.page(self.database, limit, marker, **filters)
            ]

        self.assertEqual([third.uuid, second.uuid, first.uuid], found())
        self.assertEqual([third.uuid], found(1))
        self.assertEqual([second.uuid, first.uuid], found(marker=third.uuid))
        self.assertEqual([second.uuid, first.uuid], found(host=base.HOST))
        self.assertEqual(
            [third.uuid, second.uuid], found(states=['queued', 'running'])
        )
        self.assertEqual(
            [first.uuid], found(states=['failed'], kinds=['profile-error'])
        )
        self.refused(
            errors.Invalid, Code.BAD_REQUEST, found, marker=base.uuids(1)[0]
        )

    def test_old_finished_jobs_go(self):
        self.conf.set_override('job_retention_days', 2, 'collector')
        old = self.order()
        self.tell(old, State.DONE)
        self.now += DAY_S
        young = self.order()
        self.tell(young, State.CANCELLED)
        waits = self.order()
        self.now += DAY_S + 1
        self.assertEqual(
            1, retention.purge(self.database, self.conf, self.now)['jobs']
        )
        self.now += 10 * DAY_S
        self.assertEqual(
            1, retention.purge(self.database, self.conf, self.now)['jobs']
        )
        self.assertEqual(
            [waits.uuid],
            self.database.read(
                lambda session: (
                    session.execute(sa.select(models.Job.uuid)).scalars().all()
                )
            ),
        )

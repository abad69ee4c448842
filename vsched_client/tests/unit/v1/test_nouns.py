# SPDX-License-Identifier: Apache-2.0

"""What the nouns do beside sending one request."""

import itertools

from vsched_client import errors
from vsched_client.tests.unit import api_case
from vsched_client.v1 import balloons

failure = api_case.failure


class ReservationsTestCase(api_case.ApiTestCase):
    path = '/v1/reservations/u'

    def reservation(self, state, generation=7):
        return {'reservation': {'state': state, 'generation': generation}}

    def wait(self, generation=7, timeout_s=60):
        return self.client.reservations.wait('u', generation, timeout_s)

    def test_change(self):
        self.answer('PATCH', self.path, self.reservation('pending'))
        self.client.reservations.update('u', generation=6, runtime_us=5)
        self.assertEqual(
            {'runtime_us': 5, 'generation': 6}, self.api.last_request.json()
        )
        self.client.reservations.update('u', weight=None)
        self.assertEqual({'weight': None}, self.api.last_request.json())

    def test_remove(self):
        self.answer('DELETE', self.path, status_code=204, text='')
        self.assertIsNone(self.client.reservations.delete('u', generation=7))
        self.assertEqual(['7'], self.api.last_request.qs['generation'])

    def test_wait(self):
        self.answer('GET', self.path, self.reservation('applied'))
        self.assertEqual('applied', self.wait()['state'])

    def test_wait_too_long(self):
        self.answer('GET', self.path, self.reservation('pending'))
        error = self.assertRaises(errors.TimedOut, self.wait, timeout_s=0)
        self.assertEqual('pending', error.last['state'])

    def test_wait_while_another_changes_it(self):
        self.answer('GET', self.path, self.reservation('pending', 8))
        error = self.assertRaises(errors.Superseded, self.wait)
        self.assertEqual(8, error.last['generation'])

    def test_wait_for_one_that_ends(self):
        self.answer('GET', self.path, failure(404))
        self.assertIsNone(self.wait(generation=0))
        self.assertRaises(errors.NotFound, self.wait)


class BalloonsTestCase(api_case.ApiTestCase):
    path = '/v1/balloons/u'

    def balloon(self, state, generation=7):
        order = {'state': state, 'generation': generation}
        return {'balloon': {'order': None if state is None else order}}

    def test_order(self):
        self.answer('POST', '/v1/balloons', self.balloon('pending'))
        self.client.balloons.create('u', 2, generation=0)
        self.assertEqual(
            {
                'instance_uuid': 'u',
                'target_vcpus': 2,
                'frozen': False,
                'generation': 0,
            },
            self.api.last_request.json(),
        )
        self.answer('PATCH', self.path, self.balloon('pending'))
        self.client.balloons.update('u', generation=7, frozen=True)
        self.assertEqual(
            {'frozen': True, 'generation': 7}, self.api.last_request.json()
        )

    def test_wait(self):
        self.answer('GET', self.path, self.balloon('applied'))
        found = self.client.balloons.wait('u', 7, 60)
        self.assertFalse(balloons.pending(found))
        self.answer('GET', self.path, self.balloon(None))
        self.assertIsNone(self.client.balloons.wait('u', 0, 60)['order'])
        self.assertRaises(
            errors.Superseded, self.client.balloons.wait, 'u', 7, 60
        )
        self.answer('GET', self.path, self.balloon('pending'))
        self.assertRaises(
            errors.TimedOut, self.client.balloons.wait, 'u', 7, 0
        )


class EventsTestCase(api_case.ApiTestCase):
    def event(self, uuid, second):
        return {'uuid': uuid, 'at': '2027-01-15T08:00:%02dZ' % second}

    def follow(self, *pages, limit=10, count=None, **more):
        self.answer('GET', '/v1/events', *({'events': one} for one in pages))
        now = itertools.count()
        return [
            one['uuid']
            for one in itertools.islice(
                self.client.events.follow(
                    limit,
                    1.0,
                    clock=lambda: next(now),
                    sleep=self.slept.append,
                    **more,
                ),
                count,
            )
        ]

    def test_each_event_once_the_oldest_first(self):
        found = self.follow(
            [self.event('b', 2), self.event('a', 1)],
            [self.event('b', 2), self.event('a', 1)],
            # One that its agent reported late.
            [self.event('d', 4), self.event('b', 2), self.event('c', 1)],
            count=4,
        )
        self.assertEqual(['a', 'b', 'c', 'd'], found)
        first, *_, last = self.api.request_history
        self.assertEqual({'limit': ['10']}, first.qs)
        # Five minutes before the newest one.
        self.assertEqual({'start': ['2027-01-15t07:55:02+00:00']}, last.qs)

    def test_what_the_first_page_left_out_is_not_new(self):
        found = self.follow(
            [self.event('c', 3)],
            [self.event('c', 3), self.event('b', 2), self.event('a', 1)],
            [self.event('d', 4), self.event('c', 3), self.event('b', 2)],
            limit=1,
            count=2,
        )
        self.assertEqual(['c', 'd'], found)

    def test_time_limit(self):
        self.assertEqual([], self.follow([], timeout_s=3, host='n'))
        self.assertEqual(['n'], self.api.last_request.qs['host'])
        self.assertTrue(all(one <= 1.0 for one in self.slept))


class ProfilesTestCase(api_case.ApiTestCase):
    def test_csv(self):
        path = '/v1/hosts/n/profiles/error'
        self.answer('GET', path, {'text': 'a,b\n'})
        self.assertEqual('a,b\n', self.client.profiles.csv('n', 'error'))
        self.assertEqual({'format': ['csv']}, self.api.last_request.qs)
        self.assertEqual('text/csv', self.api.last_request.headers['Accept'])
        self.answer('GET', path, failure(404))
        self.assertRaises(
            errors.NotFound, self.client.profiles.csv, 'n', 'error'
        )

    def test_create(self):
        self.answer(
            'POST', '/v1/hosts/n/profiles/error', {'job': {'uuid': 'u'}}
        )
        self.client.profiles.create('n', 'error', quick=True)
        self.assertEqual({'quick': True}, self.api.last_request.json())


class EvaluationsTestCase(api_case.ApiTestCase):
    def test_only_what_is_given_is_sent(self):
        self.answer('POST', '/v1/evaluations', {'evaluation': {'room': 1}})
        self.client.evaluations.create(demand_mcpu=600)
        self.assertEqual(
            {'demand_mcpu': 600, 'instances': 1}, self.api.last_request.json()
        )
        self.client.evaluations.create(
            extra_specs={}, vcpus=2, override={'runtime_us': 5}, hosts=('n',)
        )
        self.assertEqual(
            {
                'extra_specs': {},
                'vcpus': 2,
                'override': {'runtime_us': 5},
                'instances': 1,
                'hosts': ['n'],
            },
            self.api.last_request.json(),
        )

# SPDX-License-Identifier: Apache-2.0

"""Instances that hosts list and Nova has elsewhere."""

from vsched_api.tests import base
from vsched_api.tests.suites import verifications
from vsched_lib.contract import errors
from vsched_lib.tests import balloon_reports


class ForeignInstances(verifications.Comparing):
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def where(self, uuid):
        return (
            self.client().get('/v1/instances/' + uuid).json['instance']['host']
        )

    def told(self, host):
        """Of which instances a host is told what operators set."""
        found = self.agents[host]._collector.on_overrides(host)
        return (
            [one.instance_uuid for one in found.overrides],
            [one.instance_uuid for one in found.balloons],
            found.generation,
        )

    def test_an_instance_that_nova_has_elsewhere(self):
        one, other, moving, new = base.uuids(4)
        self.servers = {'node1': [one], 'node2': [other]}
        self.moving.add(moving)
        self.report(one)
        self.report(other, host='node2')
        self.now += 10
        # The later list determines where an instance is.
        self.report(one, other, moving, new)
        self.assertEqual('node1', self.where(other))
        # Nova may not know yet of one that no other host lists.
        self.assertEqual(2, self.verify(30))
        self.assertEqual([errors.Code.INSTANCE_FOREIGN], self.codes())
        self.assertNotIn(new, self.shown().verification.contradictions[0][1])
        self.servers['node1'].append(new)
        self.verify()
        self.assertEqual([errors.Code.INSTANCE_FOREIGN], self.codes())
        self.assertEqual([], self.codes('node2'))
        self.assertIn(other, self.shown().verification.contradictions[0][1])
        self.assertEqual('node2', self.where(other))
        self.assertEqual(
            ['node1', 'node1'], [self.where(one), self.where(moving)]
        )
        # It has moved.
        self.servers = {'node1': [one, other, moving, new]}
        self.verify()
        self.assertEqual([], self.codes())
        self.assertEqual('node1', self.where(other))

    def test_what_operators_set_is_not_for_a_host_that_has_it_not(self):
        (one,) = base.uuids(1)
        self.servers = {'node2': [one]}
        self.report(one, host='node2')
        self.agents['node2'].send(
            listed=False,
            all_balloons=True,
            balloons=(balloon_reports.report(one),),
        )
        http = self.client()
        for path, body in (
            ('/v1/reservations', {'runtime_us': 6_000}),
            ('/v1/balloons', {'target_vcpus': 2}),
        ):
            answer = http.post(path, json={'instance_uuid': one, **body})
            self.assertEqual(202, answer.status_code, answer.text)
        self.now += 10
        self.report(one)
        # For as long as it may migrate.
        before = self.told('node1')
        self.assertEqual(([one], [one]), before[:2])
        self.verify()
        self.assertEqual([errors.Code.INSTANCE_FOREIGN], self.codes())
        after = self.told('node1')
        self.assertEqual(([], []), after[:2])
        self.assertGreater(after[2], before[2])
        self.assertEqual(([one], [one]), self.told('node2')[:2])
        # It has moved, and its host asks again.
        self.servers = {'node1': [one]}
        self.verify()
        self.assertEqual(([one], [one]), self.told('node1')[:2])
        self.assertGreater(self.told('node1')[2], after[2])
        self.assertEqual(([], []), self.told('node2')[:2])

    def test_a_host_that_alone_lists_an_instance_is_served(self):
        """Nova may be wrong, or be told other names."""
        (one,) = base.uuids(1)
        self.servers = {'node2': [one]}
        self.report(one)
        answer = self.client().post(
            '/v1/reservations',
            json={'instance_uuid': one, 'runtime_us': 6_000},
        )
        self.assertEqual(202, answer.status_code, answer.text)
        self.verify(verifications.INTERVAL_S)
        self.assertEqual([errors.Code.INSTANCE_FOREIGN], self.codes())
        self.assertEqual([one], self.told('node1')[0])

    def test_an_instance_that_is_listed_anew(self):
        one, other = base.uuids(2)
        self.servers = {'node2': [one]}
        self.report(one, host='node2')
        self.now += 10
        self.report(one, other)
        self.verify()
        self.assertIn(
            'lists 2 instances', self.shown().verification.contradictions[0][1]
        )
        self.assertEqual('node2', self.where(one))
        # Compared or not while it is away, it does not count anew.
        for away in (False, True):
            self.report()
            if away:
                self.verify()
            self.now += verifications.INTERVAL_S
            self.report(one, other)
            self.assertEqual('node2', self.where(one))
            self.assertEqual(2, self.verify(30))
            self.assertEqual([errors.Code.INSTANCE_FOREIGN], self.codes())
            self.assertEqual('node2', self.where(one))

    def test_one_that_another_host_listed_before_is_compared_at_once(self):
        (one,) = base.uuids(1)
        self.servers = {'node2': [one]}
        self.report(one, host='node2')
        self.now += verifications.INTERVAL_S
        self.report(one)
        self.assertEqual('node1', self.where(one))
        self.verify(10)
        self.assertEqual([errors.Code.INSTANCE_FOREIGN], self.codes())
        self.assertEqual('node2', self.where(one))

    def test_a_result_is_not_valid_for_ever(self):
        (one,) = base.uuids(1)
        self.servers = {'node2': [one]}
        self.report(one, host='node2')
        self.now += 10
        self.report(one)
        self.verify()
        self.conf.set_override('verification_interval_s', 0, 'collector')
        self.verify()
        self.assertEqual([errors.Code.INSTANCE_FOREIGN], self.codes())
        self.assertEqual('node2', self.where(one))
        self.verify(90_000)
        self.assertIsNone(self.shown().verification)
        self.assertNotIn(
            'vsched_host_contradictions{', self.client().get('/metrics').text
        )
        self.assertEqual('node1', self.where(one))

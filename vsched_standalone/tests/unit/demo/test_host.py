# SPDX-License-Identifier: Apache-2.0

import random

from oslotest import base

from vsched_lib.contract import balloons
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import reservation
from vsched_standalone.demo import host as hosts
from vsched_standalone.demo import instance as instances

NOW = 1_760_000_000.0
UUID = '00000000-0000-4000-8000-00000000000%d'
SECOND_US = 1_000_000


def load(mean=1.0):
    return instances.Load(mean, 0.0, 60, 0, 1_000, 100)


def member(number=1, vcpus=4, flavor=(3_000, 10_000), mean=1.0):
    return instances.Instance(
        messages.InstanceInfo(UUID % number, 'vm-%d' % number, vcpus),
        None if flavor is None else reservation.Reservation(*flavor),
        load(mean),
    )


class HostTestCase(base.BaseTestCase):
    def host(self, *members, cpus=4, balloon_uuids=()):
        return hosts.Host(
            'demo-01', cpus, members, balloon_uuids, random.Random(1), NOW
        )

    def report(self, host, at=NOW, full=False):
        return host.contents(at, [(at, SECOND_US)], full)

    def override(self, runtime_us, generation=1, **changes):
        return collector_replies.Overrides(
            generation,
            (
                collector_replies.Override(
                    **{
                        'instance_uuid': UUID % 1,
                        'generation': generation,
                        'runtime_us': runtime_us,
                        'period_us': 10_000,
                        'mode': 'capped',
                        **changes,
                    }
                ),
            ),
        )


class TestReservations(HostTestCase):
    def test_flavors_are_applied(self):
        (report,) = self.report(self.host(member()))['reservations']
        self.assertEqual(messages.State.APPLIED, report.state)
        self.assertEqual('deadline', report.enforced_backend)
        self.assertEqual(3_000, report.enforced_runtime_us)
        self.assertEqual(messages.Source.METADATA, report.source)

    def test_an_instance_without_reservation_has_no_report(self):
        found = self.report(self.host(member(flavor=None)))
        self.assertEqual((), found['reservations'])
        self.assertIsNone(found['usage'][0].promised_us)

    def test_changes_are_reported_once(self):
        host = self.host(member())
        self.report(host, full=True)
        found = self.report(host, NOW + 1)
        self.assertEqual((), found['reservations'])
        self.assertEqual((), found['events'])
        self.assertNotIn('host_info', found)
        self.assertNotIn('instances', found)

    def test_an_override_is_applied_and_removed(self):
        host = self.host(member())
        self.report(host, full=True)
        host.set_overrides(self.override(5_000, request_id='req-1'), NOW + 1)
        found = self.report(host, NOW + 1)
        (report,) = found['reservations']
        self.assertEqual(
            (messages.Source.OVERRIDE, 1, 5_000),
            (report.source, report.generation, report.enforced_runtime_us),
        )
        (event,) = found['events']
        self.assertEqual(errors.Code.RESERVATION_APPLIED, event.code)
        self.assertEqual({'request_id': 'req-1'}, event.figures)
        self.assertEqual(2_000, found['host_info'].admitted_mcpu)
        self.assertEqual(1, host.overrides_generation)
        host.set_overrides(collector_replies.Overrides(2), NOW + 2)
        (report,) = self.report(host, NOW + 2)['reservations']
        self.assertEqual(
            (messages.Source.METADATA, 0, 3_000),
            (report.source, report.generation, report.enforced_runtime_us),
        )

    def test_the_same_override_changes_nothing(self):
        host = self.host(member())
        host.set_overrides(self.override(5_000), NOW)
        self.report(host)
        host.set_overrides(self.override(5_000), NOW + 1)
        self.assertEqual((), self.report(host, NOW + 1)['reservations'])

    def test_what_does_not_fit_is_refused_and_keeps_what_it_had(self):
        host = self.host(member())
        self.report(host, full=True)
        host.set_overrides(self.override(9_900), NOW + 1)
        found = self.report(host, NOW + 1)
        (report,) = found['reservations']
        self.assertEqual(messages.State.REFUSED, report.state)
        self.assertEqual(errors.Code.DOES_NOT_FIT, report.code)
        self.assertEqual(3_000, report.enforced_runtime_us)
        self.assertEqual(3_960, report.figures['asked_mcpu'])
        self.assertEqual(host.capacity_mcpu, report.figures['allowed_mcpu'])

    def test_what_cannot_be_expressed_is_refused(self):
        for changes, word in (
            ({'runtime_us': 1}, '1'),
            ({'runtime_us': 20_000}, 'period'),
        ):
            host = self.host(member())
            self.report(host)
            host.set_overrides(
                self.override(**{'runtime_us': 3_000, **changes}), NOW
            )
            (report,) = self.report(host)['reservations']
            self.assertEqual(messages.State.REFUSED, report.state)
            self.assertEqual(errors.Code.RESERVATION_INVALID, report.code)
            self.assertIn(word, report.detail)

    def test_backends_of_other_hosts_are_refused(self):
        for backend in ('rtds', 'credit2', 'credit'):
            host = self.host(member())
            self.report(host)
            host.set_overrides(self.override(3_000, backend=backend), NOW)
            (report,) = self.report(host)['reservations']
            self.assertEqual(messages.State.REFUSED, report.state)
            self.assertEqual(errors.Code.BACKEND_UNAVAILABLE, report.code)
            self.assertIn(backend, report.detail)

    def test_a_quota_takes_no_capacity(self):
        host = self.host(member())
        host.set_overrides(self.override(9_900, backend='cfs'), NOW)
        self.assertEqual(0, host.admitted_mcpu)

    def test_drift_names_an_instance(self):
        host = self.host(member())
        self.report(host)
        host.repair_drift(NOW)
        (event,) = self.report(host)['events']
        self.assertEqual(errors.Code.DRIFT_REPAIRED, event.code)
        self.assertEqual(UUID % 1, event.instance_uuid)


class TestUsage(HostTestCase):
    def test_all_cpu_time_is_accounted_for(self):
        host = self.host(
            member(1), member(2, flavor=None), member(3, flavor=None)
        )
        found = self.report(host)
        (used,) = found['host_usage']
        self.assertEqual(
            4 * SECOND_US,
            used.idle_us
            + used.guest_us
            + used.direct_us
            + used.shared_us
            + used.own_us,
        )
        self.assertEqual(
            used.guest_us, sum(one.guest_us for one in found['usage'])
        )

    def test_a_reservation_is_kept_beside_busy_neighbours(self):
        host = self.host(
            member(1), member(2, flavor=None), member(3, flavor=None)
        )
        held, *others = self.report(host)['usage']
        self.assertEqual(1_200_000, held.promised_us)
        self.assertLess(
            abs(held.guest_us - held.promised_us), held.promised_us / 100
        )
        self.assertGreater(held.wait_us, 0)
        for one in others:
            self.assertLess(one.guest_us, 4 * SECOND_US / 2)

    def test_it_changes_with_time(self):
        host = self.host(
            instances.Instance(
                messages.InstanceInfo(UUID % 1, 'vm', 2),
                None,
                instances.Load(0.5, 0.3, 60, 0, 1_000, 100),
            )
        )
        self.assertNotEqual(
            self.report(host, NOW)['usage'][0].guest_us,
            self.report(host, NOW + 15)['usage'][0].guest_us,
        )


class TestBalloons(HostTestCase):
    def order(self, host, generation, *orders):
        host.set_overrides(
            collector_replies.Overrides(generation, balloons=orders), NOW
        )
        found = self.report(host)
        return found['balloons'][0], found['balloon_changes']

    def test_an_order_is_applied_and_removed(self):
        one = member()
        host = self.host(one, balloon_uuids=[one.uuid])
        report, changes = self.order(
            host, 1, balloons.BalloonOrder(one.uuid, 1, target_vcpus=2)
        )
        self.assertEqual(
            (balloons.BalloonState.MANUAL, 2, balloons.OrderState.APPLIED),
            (report.state, report.online_vcpus, report.order_state),
        )
        (change,) = changes
        self.assertTrue(change.manual)
        self.assertEqual(2, one.online_vcpus)
        report, changes = self.order(host, 2)
        self.assertEqual(
            (balloons.BalloonState.FULL, 4, None),
            (report.state, report.online_vcpus, report.order_state),
        )
        (ended,) = changes
        self.assertEqual(change.uuid, ended.uuid)
        self.assertEqual(NOW, ended.ended_at)

    def test_an_order_out_of_bounds_is_refused(self):
        one = member()
        host = self.host(one, balloon_uuids=[one.uuid])
        report, changes = self.order(
            host, 1, balloons.BalloonOrder(one.uuid, 1, target_vcpus=9)
        )
        self.assertEqual(balloons.OrderState.REFUSED, report.order_state)
        self.assertEqual(errors.Code.BALLOON_OUT_OF_BOUNDS, report.code)
        self.assertEqual((4, ()), (report.online_vcpus, changes))

    def test_fewer_vcpus_use_less(self):
        one = member(flavor=None)
        host = self.host(one, cpus=16, balloon_uuids=[one.uuid])
        before = self.report(host)['usage'][0].guest_us
        host.take_vcpus(one.uuid, 1, NOW)
        self.assertEqual(before // 4, self.report(host)['usage'][0].guest_us)

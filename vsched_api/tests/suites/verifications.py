# SPDX-License-Identifier: Apache-2.0

"""Reports that Nova and placement contradict."""

import time
from unittest import mock

from vsched_api.operations import events
from vsched_api.operations import hosts
from vsched_api.operations import verifications
from vsched_api.tests import base
from vsched_lib.contract import errors
from vsched_lib.contract import placement as names
from vsched_lib.openstack import compute
from vsched_lib.openstack import placement
from vsched_lib.openstack import session as openstack_session

OWN = '1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b4f'
INTERVAL_S = 600


class Comparing:
    """Hosts that report, and comparisons of what they have reported.

    To be mixed into a :class:`vsched_api.tests.base.TestCase`.

    Nova and placement are clients without a service: what they return is
    :attr:`cpus` and :attr:`servers` by host.
    """

    def setUp(self):
        super().setUp()
        self.conf.set_override('auth_type', 'none', 'nova')
        self.conf.set_override('auth_type', 'none', 'placement')
        self.cpus = {'node1': 2, 'node2': 2}
        self.servers, self.moving = {}, set()
        self.offered = 1800
        self.failing = {}
        self.nova = mock.create_autospec(compute.Compute, instance=True)
        self.nova.hypervisors.side_effect = lambda: [
            compute.Hypervisor('root-' + name, name, name, cpus)
            for name, cpus in self.cpus.items()
        ]
        self.nova.moving.side_effect = lambda: frozenset(self.moving)
        self.nova.has_service.side_effect = lambda name: name in self.cpus
        self.nova.servers.side_effect = self._servers
        self.claims = mock.create_autospec(placement.Placement, instance=True)
        self.claims.provider.side_effect = self._provider
        self.claims.inventories.side_effect = self._inventories
        # The application's modules name these classes when they are imported.
        self.client()
        for owner, name, value in (
            (verifications.compute, 'Compute', self.nova),
            (verifications.placement, 'Placement', self.claims),
        ):
            self.patch(owner, name, lambda adapter, value=value: value)
        self.patch(openstack_session, 'connect', lambda conf, group: None)
        self.agents = {}

    def _servers(self, host):
        if host in self.failing:
            raise self.failing[host]
        return [
            compute.Server(one, 'ACTIVE', host, 0.0, 1, {})
            for one in self.servers.get(host, ())
        ]

    def _provider(self, name):
        host = name.partition(':')[0]
        if host not in self.cpus:
            return None
        if name == host:
            return placement.Provider('root-' + host, name, 1, None)
        uuid = OWN if host == base.HOST else 'own-' + host
        return placement.Provider(uuid, name, 1, 'root-' + host)

    def _inventories(self, uuid):
        if uuid.startswith('root-'):
            cpus = self.cpus[uuid.removeprefix('root-')]
            return 1, {
                'VCPU': placement.Inventory(cpus - 1, allocation_ratio=16.0),
                'PCPU': placement.Inventory(1),
                'MEMORY_MB': placement.Inventory(10**6),
            }
        return 1, {
            names.RESOURCE_CLASS: placement.Inventory(
                self.offered + 5_000, reserved=5_000
            )
        }

    def report(self, *listed, host=base.HOST, **info):
        if host not in self.agents:
            self.agents[host] = self.agent(host)
        self.agents[host].at = self.now
        self.agents[host].send(
            *listed, host_info=base.host_info(**{'placement': None, **info})
        )

    def verify(self, passed_s=INTERVAL_S + 1, **later):
        """Compare, an interval after the hosts have reported."""
        self.now += passed_s
        for agent in self.agents.values():
            agent.at = self.now
            agent.send(listed=False)
        self.now += 1
        return verifications.verify(self.database, self.conf, self.now)

    def shown(self, host=base.HOST):
        return hosts.get(self.database, host, self.now, 30)

    def codes(self, host=base.HOST):
        return sorted(
            code for code, _ in self.shown(host).verification.contradictions
        )

    def events(self):
        return [
            one.code
            for one in events.page(self.database, 100)
            if one.code
            in {
                errors.Code.HOST_NOT_IN_NOVA,
                errors.Code.HOST_OVERSTATED,
                errors.Code.HOST_WRONG_PROVIDER,
                errors.Code.HOST_CONFIRMED,
                errors.Code.INSTANCE_FOREIGN,
            }
        ]

    def offered_to_schedulers(self):
        return {
            one['name']: one['facts']['capacity_mcpu']
            for one in self.client().get('/v1/snapshot').json['hosts']
        }


class Verifications(Comparing):
    """What is compared of hosts, and when."""

    def test_a_host_that_nothing_contradicts(self):
        (one,) = base.uuids(1)
        self.servers['node1'] = [one]
        self.report(one)
        self.assertIsNone(self.shown().verification)
        self.assertEqual(1, self.verify())
        found = self.shown().verification
        self.assertEqual((2, []), (found.cpus, found.contradictions))
        self.assertEqual(self.now, found.checked_at)
        self.assertEqual([], self.events())
        self.assertEqual({'node1': 1800}, self.offered_to_schedulers())

    def test_no_more_capacity_than_the_compute_node_has_cpus(self):
        self.report(cpus=64, capacity_mcpu=60_000)
        self.verify()
        self.assertEqual([errors.Code.HOST_OVERSTATED], self.codes())
        self.assertEqual({'node1': 2_000}, self.offered_to_schedulers())
        self.assertEqual(2_000, self.shown().info.capacity_mcpu)
        # Neither its next report nor another comparison changes that.
        self.report(cpus=64, capacity_mcpu=59_000)
        self.assertEqual({'node1': 2_000}, self.offered_to_schedulers())
        self.verify()
        self.assertEqual([errors.Code.HOST_OVERSTATED], self.events())
        self.assertEqual({'node1': 2_000}, self.offered_to_schedulers())
        # It gets CPUs.
        self.cpus['node1'] = 64
        self.verify()
        self.assertEqual([], self.codes())
        self.assertEqual({'node1': 59_000}, self.offered_to_schedulers())
        self.assertEqual(
            [errors.Code.HOST_CONFIRMED, errors.Code.HOST_OVERSTATED],
            self.events(),
        )

    def test_what_its_provider_offers(self):
        self.offered = 2_001
        self.report()
        self.verify()
        self.assertEqual([errors.Code.HOST_OVERSTATED], self.codes())
        self.assertIn(
            'offers 2001 mcpu', self.shown().verification.contradictions[0][1]
        )

    def test_a_host_that_nova_does_not_have(self):
        self.report(host='node9')
        self.verify()
        self.assertEqual([errors.Code.HOST_NOT_IN_NOVA], self.codes('node9'))
        self.assertEqual([errors.Code.HOST_NOT_IN_NOVA], self.events())

    def test_the_provider_of_another_host(self):
        for uuid, codes in (
            (OWN, []),
            (
                'b4a0e1de-3a4e-4c55-9e5c-6d5c1c0f7a11',
                [errors.Code.HOST_WRONG_PROVIDER],
            ),
        ):
            self.report(
                placement=names.PlacementInfo(
                    names.PlacementState.SYNCED, '', uuid, 1800, 0
                )
            )
            self.verify()
            self.assertEqual(codes, self.codes())

    def test_one_host_does_not_affect_another(self):
        self.cpus['node3'] = 2
        for number in (1, 2, 3):
            (one,) = base.uuids(1)
            self.report(one, host='node%d' % number, capacity_mcpu=1_900)
            self.servers['node%d' % number] = [one]
        self.failing = {
            'node1': compute.Rejected('400'),
            'node2': KeyError('flavor'),
        }
        self.assertEqual(1, self.verify())
        self.assertEqual(2, self.shown('node3').verification.cpus)
        # They wait for their turn as all others do.
        self.failing = {}
        self.assertEqual(0, self.verify(1))
        self.assertEqual(3, self.verify())

    def test_nova_is_away(self):
        self.report(capacity_mcpu=60_000, cpus=64)
        self.verify()
        self.nova.hypervisors.side_effect = openstack_session.Unavailable('x')
        self.assertEqual(0, self.verify())
        self.assertEqual([errors.Code.HOST_OVERSTATED], self.codes())
        self.assertEqual({'node1': 2_000}, self.offered_to_schedulers())
        # What it said is not valid for ever.
        self.now += 90_000
        self.report(capacity_mcpu=60_000, cpus=64)
        self.assertEqual({'node1': 60_000}, self.offered_to_schedulers())

    def test_placement_is_away(self):
        self.report()
        for problem in (
            openstack_session.Unavailable('x'),
            placement.Rejected('too old'),
        ):
            self.claims.provider.side_effect = problem
            self.assertEqual(0, self.verify())
            self.assertIsNone(self.shown().verification)
        # No host waits for its turn when placement is there again.
        self.claims.provider.side_effect = self._provider
        self.assertEqual(1, self.verify(1))

    def test_no_more_hosts_at_a_time_than_configured(self):
        self.conf.set_override('verification_hosts', 2, 'collector')
        for number in range(5):
            self.report(host='node%d' % number)
        self.assertEqual(2, self.verify())
        self.assertEqual(
            [2, 1, 0], [self.verify(1), self.verify(1), self.verify(1)]
        )

    def test_only_once_by_several_collectors(self):
        self.report()
        self.verify()
        self.assertIsNone(
            self.database.write(
                lambda session: verifications._claim(
                    session, base.HOST, self.now + 1, INTERVAL_S
                )
            )
        )

    def test_hosts_that_do_not_report_are_left_out(self):
        self.report()
        self.now += 10_000
        self.assertEqual(
            0, verifications.verify(self.database, self.conf, self.now)
        )

    def test_what_is_not_configured_is_not_queried(self):
        self.report()
        for group in ('nova', 'placement'):
            self.conf.set_override('auth_type', None, group)
        self.assertEqual(0, self.verify())
        self.nova.hypervisors.assert_not_called()
        self.conf.set_override('auth_type', 'none', 'nova')
        self.conf.set_override('verification_interval_s', 0, 'collector')
        self.assertEqual(0, self.verify())
        self.nova.hypervisors.assert_not_called()

    def test_with_nova_only(self):
        self.conf.set_override('auth_type', None, 'placement')
        self.report(cpus=64, capacity_mcpu=60_000)
        self.verify()
        self.assertEqual({'node1': 2_000}, self.offered_to_schedulers())
        self.claims.provider.assert_not_called()

    def test_with_placement_only(self):
        self.conf.set_override('auth_type', None, 'nova')
        (one,) = base.uuids(1)
        self.report(one, cpus=64, capacity_mcpu=60_000)
        self.verify()
        self.assertEqual([errors.Code.HOST_OVERSTATED], self.codes())
        self.assertEqual({'node1': 2_000}, self.offered_to_schedulers())
        self.nova.hypervisors.assert_not_called()

    def test_stored_info_that_cannot_be_read(self):
        self.report()
        self.report(host='node2')
        self.database.write(
            lambda session: setattr(
                verifications.hosts.lock(session, 'node1'), 'info', {'x': 1}
            )
        )
        self.assertEqual(1, self.verify())
        self.assertEqual(0, self.verify(1))

    def test_it_is_shown(self):
        self.report(cpus=64, capacity_mcpu=60_000)
        client = self.client()
        self.assertIsNone(
            client.get('/v1/hosts/node1').json['host']['verification']
        )
        self.verify()
        shown = client.get('/v1/hosts').json['hosts'][0]['verification']
        self.assertEqual(2, shown['cpus'])
        self.assertEqual(
            ['vsched.host.overstated'],
            [one['code'] for one in shown['contradictions']],
        )
        self.assertIn(
            'vsched_host_contradictions{host="node1"} 1.0',
            client.get('/metrics').text,
        )

    def test_a_report_does_not_wait_for_nova(self):
        self.report()
        waited = []

        def slow(host):
            # A report in the middle of the comparison.
            began_s = time.monotonic()
            self.report(capacity_mcpu=1_700)
            waited.append(time.monotonic() - began_s)
            return []

        self.nova.servers.side_effect = slow
        self.report(*base.uuids(1))
        self.verify()
        self.assertEqual(1, len(waited))
        self.assertEqual({'node1': 1_700}, self.offered_to_schedulers())

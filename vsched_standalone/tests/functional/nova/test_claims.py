# SPDX-License-Identifier: Apache-2.0

"""A flavor's promise becomes a claim on the host's provider."""

import time

from vsched_agent.placement import inventory as desired
from vsched_lib.contract import flavors
from vsched_lib.contract import placement as names
from vsched_standalone.tests.functional.nova import cloud


class Claiming(cloud.Cloud):
    def promising(self, runtime_us, vcpus=1, io_mcpu=0, **specs):
        """A flavor that claims what it promises, its I/O on top."""
        name = self.flavor(vcpus)
        found = self.found(name)
        self.nova.set_extra_specs(
            found,
            flavors.changed(
                vcpus,
                {},
                {
                    'vsched:cpu_runtime_us': str(runtime_us),
                    **{'vsched:' + key: text for key, text in specs.items()},
                },
                lambda ask: io_mcpu,
            ).added,
        )
        return name

    def active(self, flavor, **more):
        server = self.settled(self.boot(flavor, **more))
        self.assertEqual('ACTIVE', server['status'], server)
        return server

    def settles(self, own, wanted):
        """Nova says that it's done before it has told placement."""
        give_up = time.monotonic() + cloud.PATIENCE_S
        while self.claimed(own) != wanted and time.monotonic() < give_up:
            time.sleep(0.1)
        self.assertEqual(wanted, self.claimed(own))


class TestClaims(Claiming):
    def test_the_claim_is_on_the_hosts_own_provider(self):
        own = self.host('node1', 1900)
        server = self.active(self.promising(6_000, vcpus=2))
        self.assertEqual({server['id']: 600}, self.claimed(own))
        self.assertEqual(0, self.offered(own) - 1900)
        # The vCPUs are claimed of the compute, as ever.
        root = self.claims.provider('node1')
        self.assertEqual(
            {server['id']: 2}, self.claims.claims(root.uuid, 'VCPU')
        )
        self._delete_server(server)
        self.settles(own, {})

    def offered(self, own):
        inventory = self.claims.inventories(own)[1][names.RESOURCE_CLASS]
        return inventory.total - inventory.reserved

    def test_what_does_not_fit_is_not_built(self):
        own = self.host('node1', 900)
        flavor = self.promising(10_000)
        server = self.active(flavor)
        second = self.settled(self.boot(flavor))
        self.assertEqual('ERROR', second['status'])
        self.assertEqual({server['id']: 500}, self.claimed(own))

    def test_room_for_io_is_sold_once(self):
        """Reservations of three would fit, their I/O would not."""
        own = self.host('node1', 1000)
        flavor = self.promising(
            6_000, io_mcpu=100, io_charging='overprovision', net_rx_pps='1000'
        )
        # Two schedulers at once could do no better than one request of two.
        self.boot(flavor, min_count=2, max_count=2)
        self.assertEqual(
            ['ACTIVE'] * 2, [one['status'] for one in self.all_settled()]
        )
        self.assertEqual('ERROR', self.settled(self.boot(flavor))['status'])
        self.assertEqual([400, 400], list(self.claimed(own).values()))

    def test_a_bound_on_errors_takes_a_certified_host(self):
        certified = {
            names.certified_trait('deadline', 20_000, bound_ppm)
            for bound_ppm in (20_000, 50_000)
        }
        self.host(
            'loose',
            1900,
            traits=desired.traits(
                ['deadline'],
                frozenset({names.certified_trait('deadline', 20_000, 50_000)}),
            ),
        )
        self.host('unmeasured', 1900)
        own = self.host(
            'node1',
            1900,
            traits=desired.traits(['deadline'], frozenset(certified)),
        )
        flavor = self.promising(6_000, max_alloc_error_pct='3')
        both = {self.active(flavor)['id'] for _ in range(2)}
        self.assertEqual(both, set(self.claimed(own)))

    def test_a_host_without_vsched_gets_none(self):
        self.start_compute('plain')
        own = self.host('node1', 900)
        flavor = self.promising(8_000)
        both = {self.active(flavor)['id'] for _ in range(2)}
        self.assertEqual(both, set(self.claimed(own)))
        self.assertEqual('ERROR', self.settled(self.boot(flavor))['status'])
        # Others may still go there.
        self.active(self.flavor())

    def test_a_host_that_lacks_the_backend_gets_none(self):
        self.host('weak', 1900, traits=frozenset())
        own = self.host('node1', 1900)
        server = self.active(self.promising(8_000, backend='deadline'))
        self.assertEqual({server['id']: 400}, self.claimed(own))

    def test_several_in_one_request_do_not_share_room(self):
        mine = [self.host('node%d' % number, 1000) for number in (1, 2)]
        flavor = self.promising(10_000)
        self.boot(flavor, min_count=4, max_count=4)
        self.all_settled()
        self.assertEqual(
            [1000, 1000], [sum(self.claimed(own).values()) for own in mine]
        )

    def test_resized_the_claim_follows(self):
        self.flags(allow_resize_to_same_host=True)
        own = self.host('node1', 1900)
        server = self.active(self.promising(6_000))
        larger = self.promising(12_000)
        self.api.post_server_action(
            server['id'], {'resize': {'flavorRef': larger}}
        )
        self._wait_for_state_change(server, 'VERIFY_RESIZE')
        # Until it's confirmed the way back is kept free.
        self.assertEqual(900, sum(self.claimed(own).values()))
        self.api.post_server_action(server['id'], {'confirmResize': None})
        self.settles(own, {server['id']: 600})

    def test_cold_migrated_the_claim_moves(self):
        first, second = (
            self.host('node%d' % number, 1900) for number in (1, 2)
        )
        server = self.active(self.promising(6_000), host='node1')
        self.api.post_server_action(server['id'], {'migrate': None})
        server = self._wait_for_state_change(server, 'VERIFY_RESIZE')
        self.api.post_server_action(server['id'], {'confirmResize': None})
        self.settles(first, {})
        self.assertEqual({server['id']: 300}, self.claimed(second))

    def test_computes_periodic_tasks_leave_it_alone(self):
        own = self.host('node1', 1900)
        server = self.active(self.promising(6_000))
        before = self.claims.provider('node1:vsched')
        inventory = self.claims.inventories(own)[1]
        self.periodic_tasks()
        self.restart_compute_service(self.computes['node1'])
        self.periodic_tasks()
        self.assertEqual(inventory, self.claims.inventories(own)[1])
        self.assertEqual(
            before.parent_uuid,
            self.claims.provider('node1:vsched').parent_uuid,
        )
        self.assertEqual({server['id']: 300}, self.claimed(own))

    def test_with_the_compute_service_goes_our_provider(self):
        own = self.host('node1', 1900)
        server = self.active(self.promising(6_000))
        self._delete_server(server)
        self.settles(own, {})
        self.computes['node1'].stop()
        service = self.api.get_services(host='node1', binary='nova-compute')[0]
        self.api.put_service(service['id'], {'forced_down': True})
        self.api.api_delete('/os-services/%s' % service['id'])
        self.assertIsNone(self.claims.provider('node1'))
        self.assertIsNone(self.claims.provider('node1:vsched'))

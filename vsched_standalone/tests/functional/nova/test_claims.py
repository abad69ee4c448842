# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""A flavor's promise becomes a claim on the host's provider."""

import time

from vsched_lib.contract import flavors
from vsched_lib.contract import placement as names
from vsched_standalone.tests.functional.nova import cloud


class Claiming(cloud.Cloud):

    def promising(self, runtime_us, vcpus=1, **specs):
        """A flavor that claims what it promises."""
        name = self.flavor(vcpus)
        found = self.found(name)
        self.nova.set_extra_specs(found, flavors.changed(
            vcpus, {}, {'vsched:cpu_runtime_us': str(runtime_us), **{
                'vsched:' + key: text
                for key, text in specs.items()}}).added)
        return name

    def active(self, flavor, **more):
        server = self.settled(self.boot(flavor, **more))
        self.assertEqual('ACTIVE', server['status'], server)
        return server


    def settles(self, own, wanted):
        """Nova says that it's done before it has told placement."""
        give_up = time.monotonic() + 60
        while (self.claimed(own) != wanted and
               time.monotonic() < give_up):
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
        self.assertEqual({server['id']: 2},
                         self.claims.claims(root.uuid, 'VCPU'))
        self._delete_server(server)
        self.assertEqual({}, self.claimed(own))

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
        mine = [self.host('node%d' % number, 1000)
                for number in (1, 2)]
        flavor = self.promising(10_000)
        self.boot(flavor, min_count=4, max_count=4)
        self.all_settled()
        self.assertEqual([1000, 1000], [
            sum(self.claimed(own).values()) for own in mine])

    def test_resized_the_claim_follows(self):
        self.flags(allow_resize_to_same_host=True)
        own = self.host('node1', 1900)
        server = self.active(self.promising(6_000))
        larger = self.promising(12_000)
        self.api.post_server_action(
            server['id'], {'resize': {'flavorRef': larger}})
        self._wait_for_state_change(server, 'VERIFY_RESIZE')
        # Until it's confirmed the way back is kept free.
        self.assertEqual(900, sum(self.claimed(own).values()))
        self.api.post_server_action(server['id'], {'confirmResize': None})
        self.settles(own, {server['id']: 600})

    def test_cold_migrated_the_claim_moves(self):
        first, second = (self.host('node%d' % number, 1900)
                         for number in (1, 2))
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
        self.assertEqual(before.parent_uuid, self.claims.provider(
            'node1:vsched').parent_uuid)
        self.assertEqual({server['id']: 300}, self.claimed(own))

    def test_with_the_compute_service_goes_our_provider(self):
        self.host('node1', 1900)
        server = self.active(self.promising(6_000))
        self._delete_server(server)
        self.computes['node1'].stop()
        service = self.api.get_services(
            host='node1', binary='nova-compute')[0]
        self.api.put_service(service['id'], {'forced_down': True})
        self.api.api_delete('/os-services/%s' % service['id'])
        self.assertIsNone(self.claims.provider('node1'))
        self.assertIsNone(self.claims.provider('node1:vsched'))

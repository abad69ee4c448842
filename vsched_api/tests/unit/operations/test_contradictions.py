# SPDX-License-Identifier: Apache-2.0

from unittest import mock

from oslotest import base

from vsched_api.operations import contradictions
from vsched_lib.contract import errors
from vsched_lib.openstack import compute
from vsched_lib.openstack import placement

NODE = compute.Hypervisor('root', 'node1.example.org', 'node1', 4)


class TestReference(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.nova = mock.create_autospec(compute.Compute, instance=True)
        self.nova.has_service.return_value = False
        self.nova.servers.return_value = []
        self.claims = mock.create_autospec(placement.Placement, instance=True)
        self.claims.provider.return_value = None
        self.claims.inventories.return_value = (
            1,
            {'VCPU': placement.Inventory(4, allocation_ratio=16.0)},
        )

    def compare(self, *nodes, claims=True, **values):
        return contradictions.Reference(
            self.nova, self.claims if claims else None, nodes, frozenset()
        ).compare(
            contradictions.Reported(
                **{
                    'host': 'node1',
                    'capacity_mcpu': 3_800,
                    'provider_uuid': None,
                    'instances': frozenset(),
                    **values,
                }
            )
        )

    def codes(self, *nodes, **values):
        return [
            one.code for one in self.compare(*nodes, **values).contradictions
        ]

    def test_by_the_name_of_the_service_or_of_the_hypervisor(self):
        for host in ('node1', 'node1.example.org'):
            self.assertEqual([], self.codes(NODE, host=host))
        self.nova.has_service.assert_not_called()
        self.assertEqual(
            [errors.Code.HOST_NOT_IN_NOVA], self.codes(NODE, host='node2')
        )

    def test_a_service_that_has_no_hypervisor_yet(self):
        self.nova.has_service.return_value = True
        self.assertEqual([], self.codes())

    def test_the_allocation_ratio_makes_no_cpus(self):
        self.assertEqual(
            [errors.Code.HOST_OVERSTATED],
            self.codes(NODE, capacity_mcpu=4_001),
        )
        self.assertEqual([], self.codes(NODE, capacity_mcpu=4_000))

    def test_several_nodes_of_one_service(self):
        found = self.compare(NODE, NODE, capacity_mcpu=8_000)
        self.assertEqual((8, []), (found.cpus, list(found.contradictions)))

    def test_the_provider_of_the_node_does_not_exist_yet(self):
        self.claims.inventories.side_effect = placement.Rejected('404')
        found = self.compare(NODE, capacity_mcpu=10**6)
        self.assertEqual((None, []), (found.cpus, list(found.contradictions)))
        # The CPUs that it was seen with are not forgotten.
        found = self.compare(NODE, capacity_mcpu=10**6, cpus=4)
        self.assertEqual(4, found.cpus)

    def test_one_contradiction_for_each_code(self):
        self.claims.provider.return_value = placement.Provider(
            'own', 'node1:vsched', 1, 'root'
        )
        self.claims.inventories.return_value = (
            1,
            {
                'VCPU': placement.Inventory(4),
                'CUSTOM_VSCHED_MCPU': placement.Inventory(10_000),
            },
        )
        self.assertEqual(
            [errors.Code.HOST_OVERSTATED],
            self.codes(NODE, capacity_mcpu=9_000),
        )

    def test_many_foreign_instances_are_counted_and_few_named(self):
        uuids = frozenset('uuid-%03d' % number for number in range(500))
        found = self.compare(NODE, instances=uuids)
        self.assertEqual(uuids, found.foreign)
        (one,) = found.contradictions
        self.assertEqual({'instances': 500}, one.figures)
        self.assertIn('500 instances', one.detail)
        self.assertLess(len(one.detail), 200)

    def test_a_host_without_instances_costs_no_list_of_servers(self):
        self.compare(NODE)
        self.nova.servers.assert_not_called()

# SPDX-License-Identifier: Apache-2.0

"""This host's provider, in a real placement."""

import threading
import uuid as uuids

from keystoneauth1 import exceptions
import testtools

from vsched_agent.placement import inventory as desired
from vsched_agent.placement import sync
from vsched_lib.contract import placement as names
from vsched_lib.openstack import placement
from vsched_lib.tests import openstack_services

MCPU = names.RESOURCE_CLASS
TRAITS = desired.traits(
    ('deadline',),
    frozenset({names.certified_trait('deadline', 20_000, 20_000)}),
)


class TestSync(testtools.TestCase):
    def setUp(self):
        super().setUp()
        # One for all tests: each has a host of its own.
        self.use(openstack_services.shared_placement(self))
        self.compute = 'node-%s.example.org' % uuids.uuid4().hex

    def use(self, service):
        self.service = service
        self.client = service.client()
        self.admin = service.adapter()

    def want(self, capacity_mcpu=1900, **more):
        return desired.Desired(
            self.compute, capacity_mcpu, **{'traits': TRAITS, **more}
        )

    def own(self):
        return self.client.provider(names.provider_name(self.compute))

    def inventory(self):
        return self.client.inventories(self.own().uuid)[1][MCPU]

    def test_a_new_host(self):
        root = self.service.make_compute(self.compute)
        outcome = sync.sync(self.client, self.want(reserve_mcpu=100))
        self.assertTrue(outcome.changed)
        self.assertEqual(root, self.own().parent_uuid)
        self.assertEqual(
            placement.Inventory(2000, 100, max_unit=1900), self.inventory()
        )
        self.assertEqual(
            {
                'CUSTOM_VSCHED_BACKEND_DEADLINE',
                'CUSTOM_VSCHED_CERTIFIED_DEADLINE_20000US_2PCT',
            },
            self.client.traits(self.own().uuid)[1],
        )
        # The compute's own inventory is none of our business.
        self.assertEqual({'VCPU'}, set(self.client.inventories(root)[1]))

    def test_again_writes_nothing(self):
        self.service.make_compute(self.compute)
        sync.sync(self.client, self.want())
        before = self.own()
        outcome = sync.sync(self.client, self.want())
        self.assertFalse(outcome.changed)
        self.assertEqual(before, self.own())

    def test_what_changed_is_changed(self):
        self.service.make_compute(self.compute)
        sync.sync(self.client, self.want())
        sync.sync(
            self.client,
            self.want(800, traits=frozenset({names.BALLOON_TRAIT})),
        )
        self.assertEqual(
            placement.Inventory(800, max_unit=800), self.inventory()
        )
        self.assertEqual(
            {names.BALLOON_TRAIT}, self.client.traits(self.own().uuid)[1]
        )

    def test_a_host_that_can_promise_nothing(self):
        self.service.make_compute(self.compute)
        sync.sync(self.client, self.want(0))
        self.assertEqual(placement.Inventory(1, 1), self.inventory())
        self.assertRaises(
            exceptions.Conflict,
            self.service.claim,
            str(uuids.uuid4()),
            self.own().uuid,
            **{MCPU: 1},
        )

    def test_no_compute_yet(self):
        problem = self.assertRaises(
            sync.NoCompute, sync.sync, self.client, self.want()
        )
        self.assertIn(self.compute, str(problem))
        self.assertIsNone(self.own())

    def test_the_host_has_another_name_than_the_hypervisor(self):
        other = 'hypervisor-' + self.compute
        root = self.service.make_compute(other)
        sync.sync(self.client, desired.Desired(other, 500))
        own = self.client.provider(other + ':vsched')
        self.assertEqual(root, own.parent_uuid)

    def test_the_compute_service_was_deleted(self):
        root = self.service.make_compute(self.compute)
        sync.sync(self.client, self.want())
        # As Nova does: the children first.
        self.admin.delete('/resource_providers/' + self.own().uuid)
        self.admin.delete('/resource_providers/' + root)
        self.assertRaises(sync.NoCompute, sync.sync, self.client, self.want())
        again = self.service.make_compute(self.compute)
        sync.sync(self.client, self.want())
        self.assertEqual(again, self.own().parent_uuid)
        self.assertEqual(1900, self.inventory().total)

    def installed_anew(self):
        root = self.service.make_compute(self.compute)
        sync.sync(self.client, self.want())
        self.admin.put(
            '/resource_providers/' + root, json={'name': 'old-' + self.compute}
        )
        return self.service.make_compute(self.compute)

    def test_the_node_was_installed_anew(self):
        new = self.installed_anew()
        consumer = str(uuids.uuid4())
        self.service.claim(consumer, self.own().uuid, **{MCPU: 300})
        before = self.own().uuid
        sync.sync(self.client, self.want())
        self.assertEqual(new, self.own().parent_uuid)
        self.assertEqual(before, self.own().uuid)
        self.assertEqual({consumer: 300}, self.client.claims(before, MCPU))

    def test_installed_anew_with_an_old_placement(self):
        new = self.installed_anew()
        before = self.own().uuid
        self.client._version = (1, 30)
        sync.sync(self.client, self.want())
        self.assertEqual(new, self.own().parent_uuid)
        self.assertNotEqual(before, self.own().uuid)

    def test_absent_for_days(self):
        # Meanwhile somebody else has written, and instances have come.
        self.service.make_compute(self.compute)
        sync.sync(self.client, self.want())
        own = self.own()
        self.service.claim(str(uuids.uuid4()), own.uuid, **{MCPU: 700})
        generation, _ = self.client.inventories(own.uuid)
        self.client.set_inventories(
            own.uuid,
            generation,
            {
                MCPU: placement.Inventory(5000, max_unit=5000),
                'MEMORY_MB': placement.Inventory(64, max_unit=64),
            },
        )
        outcome = sync.sync(self.client, self.want())
        self.assertEqual({MCPU}, set(self.client.inventories(own.uuid)[1]))
        self.assertEqual(1900, self.inventory().total)
        self.assertEqual(700, outcome.claimed_mcpu)

    def test_less_than_is_claimed(self):
        self.service.make_compute(self.compute)
        sync.sync(self.client, self.want())
        self.service.claim(str(uuids.uuid4()), self.own().uuid, **{MCPU: 1500})
        outcome = sync.sync(self.client, self.want(900))
        self.assertEqual(600, outcome.over_mcpu)
        self.assertEqual(900, self.inventory().total)
        self.assertRaises(
            exceptions.Conflict,
            self.service.claim,
            str(uuids.uuid4()),
            self.own().uuid,
            **{MCPU: 1},
        )

    def test_what_is_held_beyond_a_claim_is_reserved(self):
        self.service.make_compute(self.compute)
        sync.sync(self.client, self.want())
        with_margin, stranger, building = (
            str(uuids.uuid4()) for _ in range(3)
        )
        self.service.claim(with_margin, self.own().uuid, **{MCPU: 600})
        self.service.claim(building, self.own().uuid, **{MCPU: 200})
        sync.sync(
            self.client, self.want(held_mcpu={with_margin: 660, stranger: 300})
        )
        self.assertEqual(360, self.inventory().reserved)
        # 1900 - 360 - 800 are left.
        self.assertRaises(
            exceptions.Conflict,
            self.service.claim,
            str(uuids.uuid4()),
            self.own().uuid,
            **{MCPU: 741},
        )
        self.service.claim(str(uuids.uuid4()), self.own().uuid, **{MCPU: 740})

    def test_class_and_traits_are_made(self):
        self.use(self.useFixture(openstack_services.Placement(self)))
        self.service.make_compute(self.compute)
        sync.sync(self.client, self.want())
        own = self.own()
        sync.remove(self.client, self.compute)
        self.admin.delete('/resource_classes/' + MCPU)
        self.admin.delete('/traits/' + names.backend_trait('deadline'))
        sync.sync(self.client, self.want())
        self.assertNotEqual(own.uuid, self.own().uuid)

    def test_somebody_else_comes_first(self):
        # A client that is overtaken between what it reads and writes.
        self.service.make_compute(self.compute)
        sync.sync(self.client, self.want())
        overtaken = []

        class Overtaken(placement.Placement):
            def set_inventories(client, uuid, generation, inventories):
                if len(overtaken) < 3:
                    overtaken.append(generation)
                    self.service.claim(str(uuids.uuid4()), uuid, **{MCPU: 100})
                return super().set_inventories(uuid, generation, inventories)

        outcome = sync.sync(Overtaken(self.admin), self.want(1000))
        self.assertEqual(3, len(set(overtaken)))
        self.assertEqual(300, outcome.claimed_mcpu)
        self.assertEqual(1000, self.inventory().total)

    def test_always_overtaken_is_a_failure(self):
        self.service.make_compute(self.compute)
        sync.sync(self.client, self.want())

        class Overtaken(placement.Placement):
            def set_inventories(client, uuid, generation, inventories):
                return super().set_inventories(
                    uuid, generation - 1, inventories
                )

        pauses = []
        self.assertRaises(
            placement.Conflict,
            sync.sync,
            Overtaken(self.admin),
            self.want(1000),
            pauses.append,
        )
        self.assertEqual(sync.ATTEMPTS - 1, len(pauses))

    def test_two_agents_at_once(self):
        # E.g. an old one that hasn't ended: whoever is last is right, and
        # neither fails.
        self.use(
            self.useFixture(
                openstack_services.Placement(
                    self, openstack_services.mariadb(self)
                )
            )
        )
        self.service.make_compute(self.compute)
        failures = []

        def run(capacity_mcpu):
            client = self.service.client()
            try:
                for _ in range(5):
                    sync.sync(client, self.want(capacity_mcpu))
            except Exception as problem:
                failures.append(problem)

        threads = [
            threading.Thread(target=run, args=(size,)) for size in (1000, 1100)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], failures)
        self.assertIn(self.inventory().total, (1000, 1100))

    def test_remove(self):
        self.service.make_compute(self.compute)
        sync.sync(self.client, self.want())
        consumer = str(uuids.uuid4())
        self.service.claim(consumer, self.own().uuid, **{MCPU: 100})
        self.assertRaises(
            placement.InUse, sync.remove, self.client, self.compute
        )
        self.client.withdraw(consumer, self.own().uuid)
        self.assertTrue(sync.remove(self.client, self.compute))
        self.assertFalse(sync.remove(self.client, self.compute))

    def test_withdraw_leaves_other_claims(self):
        root = self.service.make_compute(self.compute)
        sync.sync(self.client, self.want())
        consumer = str(uuids.uuid4())
        self.admin.put(
            '/allocations/' + consumer,
            json={
                'allocations': {
                    root: {'resources': {'VCPU': 1}},
                    self.own().uuid: {'resources': {MCPU: 100}},
                },
                'project_id': 'p',
                'user_id': 'u',
                'consumer_generation': None,
            },
        )
        self.client.withdraw(consumer, self.own().uuid)
        self.assertEqual({}, self.client.claims(self.own().uuid, MCPU))
        self.assertEqual({consumer: 1}, self.client.claims(root, 'VCPU'))

# SPDX-License-Identifier: Apache-2.0

"""``/v1/hosts/{name}/audit`` with a real placement."""

import uuid as uuids

from keystoneauth1 import loading

from vsched_api.tests import base
from vsched_lib.contract import placement as names
from vsched_lib.openstack import placement
from vsched_lib.tests import openstack_services


class TestAudit(base.TestCase):
    def setUp(self):
        super().setUp()
        self.service = openstack_services.shared_placement(self)
        self.conf.register_opts(
            loading.get_auth_plugin_conf_options('admin_token'),
            group='placement',
        )
        for name, value in self.service.options.items():
            self.conf.set_override(name, value, 'placement')
        client = self.service.client()
        compute = 'node-' + uuids.uuid4().hex
        own = client.create(
            compute + ':vsched', self.service.make_compute(compute)
        )
        client.ensure_class(names.RESOURCE_CLASS)
        client.set_inventories(
            own.uuid,
            own.generation,
            {names.RESOURCE_CLASS: placement.Inventory(1800, max_unit=1800)},
        )
        self.own = own.uuid
        self.instance = str(uuids.uuid4())
        self.node = self.agent('node1')
        self.node.send(
            self.instance,
            reservations=(base.reservation(self.instance),),
            host_info=base.host_info(
                placement=names.PlacementInfo(
                    names.PlacementState.SYNCED, '', own.uuid, 1800, 0
                )
            ),
        )

    def claim(self, consumer, mcpu):
        self.service.claim(consumer, self.own, **{names.RESOURCE_CLASS: mcpu})

    def audit(self):
        return self.client().get('/v1/hosts/node1/audit')

    def test_all_agree(self):
        self.claim(self.instance, 600)
        self.assertEqual(
            {'audit': {'host': 'node1', 'agrees': True, 'differences': []}},
            self.audit().json,
        )

    def test_differences(self):
        other = str(uuids.uuid4())
        self.claim(self.instance, 500)
        self.claim(other, 100)
        found = self.audit().json['audit']
        self.assertFalse(found['agrees'])
        self.assertEqual(
            {
                (self.instance, 'claim_differs', 500, 600),
                (other, 'unlisted', 100, 0),
            },
            {
                (
                    one['consumer'],
                    one['kind'],
                    one['claimed_mcpu'],
                    one['promised_mcpu'],
                )
                for one in found['differences']
            },
        )

    def test_weights_that_take_capacity(self):
        self.claim(self.instance, 600)
        for backend, promised_mcpu in (('credit2', 600), ('cfs', 0)):
            self.node.send(
                self.instance,
                reservations=(
                    base.reservation(
                        self.instance,
                        backend=backend,
                        enforced_backend=backend,
                    ),
                ),
            )
            found = self.audit().json['audit']
            self.assertEqual(
                [] if promised_mcpu else [(600, 0)],
                [
                    (one['claimed_mcpu'], one['promised_mcpu'])
                    for one in found['differences']
                ],
            )

    def test_placement_is_away(self):
        self.conf.set_override('endpoint', 'http://127.0.0.1:9', 'placement')
        answer = self.audit()
        self.assertEqual(503, answer.status_code)
        self.assertEqual(
            'vsched.placement.unavailable', answer.json['errors'][0]['code']
        )
        self.assertIn('Retry-After', answer.headers)

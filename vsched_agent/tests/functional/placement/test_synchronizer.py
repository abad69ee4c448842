# SPDX-License-Identifier: Apache-2.0

"""The synchronizer and a real placement that comes and goes."""

import threading
import uuid as uuids

from keystoneauth1 import exceptions
from oslo_config import cfg
import testtools

from vsched_agent import conf as agent_conf
from vsched_agent.placement import factory
from vsched_agent.placement import inventory
from vsched_lib.contract import errors
from vsched_lib.contract import placement as names
from vsched_lib.tests import openstack_services

State = names.PlacementState
#: Only a hang takes longer.
PATIENCE_S = 120


class Keeping(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.compute = 'node-' + uuids.uuid4().hex
        self.events = []
        self.told = threading.Condition()

    def conf(self, **options):
        conf = cfg.ConfigOpts()
        agent_conf.register_opts(conf)
        path = openstack_services.write_options(
            self, {'placement': {'sync_interval': 1, **options}}
        )
        conf([], default_config_files=[path], default_config_dirs=[])
        return conf

    def tell(self, code, severity, detail):
        with self.told:
            self.events.append((code, detail))
            self.told.notify_all()

    def wait_for(self, code, times=1):
        with self.told:
            self.assertTrue(
                self.told.wait_for(
                    lambda: (
                        [one for one, _ in self.events].count(code) >= times
                    ),
                    PATIENCE_S,
                ),
                self.events,
            )

    def keep(self, conf):
        synchronizer = factory.make_synchronizer(conf, self.tell)
        synchronizer.start()
        self.addCleanup(synchronizer.stop)
        return synchronizer

    def want(self, synchronizer, capacity_mcpu=1900, **more):
        synchronizer.set_desired(
            inventory.Desired(self.compute, capacity_mcpu, **more)
        )


class TestKeeper(Keeping):
    def test_off_by_default(self):
        conf = cfg.ConfigOpts()
        agent_conf.register_opts(conf)
        conf([], default_config_files=[], default_config_dirs=[])
        self.assertIsNone(factory.make_synchronizer(conf, self.tell))

    def test_compute_comes_later(self):
        service = openstack_services.shared_placement(self)
        synchronizer = self.keep(self.conf(**service.options))
        self.want(synchronizer)
        self.wait_for(errors.Code.PLACEMENT_WAITING)
        service.make_compute(self.compute)
        self.wait_for(errors.Code.PLACEMENT_SYNCED)
        info = synchronizer.info()
        self.assertEqual(
            (State.SYNCED, 1900, 0),
            (info.state, info.offered_mcpu, info.claimed_mcpu),
        )
        self.assertEqual(2, len(self.events))

    def test_more_claimed_than_there_is_is_told_once(self):
        service = openstack_services.shared_placement(self)
        service.make_compute(self.compute)
        synchronizer = self.keep(self.conf(**service.options))
        self.want(synchronizer)
        self.wait_for(errors.Code.PLACEMENT_SYNCED)
        service.claim(
            str(uuids.uuid4()),
            synchronizer.info().provider_uuid,
            **{names.RESOURCE_CLASS: 1000},
        )
        self.want(synchronizer, 600)
        self.wait_for(errors.Code.PLACEMENT_OVERCLAIMED)
        synchronizer.run_once()
        synchronizer.run_once()
        self.assertEqual(2, len(self.events))

    def test_placement_goes_away_and_comes_back(self):
        service = self.useFixture(openstack_services.Placement(self))
        service.make_compute(self.compute)
        service.stop()
        synchronizer = self.keep(self.conf(**service.options))
        self.want(synchronizer)
        self.wait_for(errors.Code.PLACEMENT_FAILED)
        service.start()
        self.wait_for(errors.Code.PLACEMENT_SYNCED)
        service.stop()
        self.want(synchronizer, 1000)
        self.wait_for(errors.Code.PLACEMENT_FAILED, 2)
        # What was known stays known.
        self.assertEqual(1900, synchronizer.info().offered_mcpu)
        service.start()
        self.wait_for(errors.Code.PLACEMENT_SYNCED, 2)
        self.assertEqual(1000, synchronizer.info().offered_mcpu)
        self.assertEqual(4, len(self.events))


class TestKeystone(Keeping):
    def test_with_keystone(self):
        keystone = self.useFixture(openstack_services.Keystone(self))
        service = self.useFixture(
            openstack_services.Placement(self, keystone=keystone)
        )
        keystone.add_service('placement', service.endpoint)
        administrator = keystone.adapter('placement')
        root = str(uuids.uuid4())
        administrator.post(
            '/resource_providers', json={'uuid': root, 'name': self.compute}
        )

        synchronizer = self.keep(
            self.conf(**{**keystone.password, 'password': 'wrong'})
        )
        self.want(synchronizer)
        self.wait_for(errors.Code.PLACEMENT_FAILED)
        self.assertEqual(State.FAILED, synchronizer.info().state)

        synchronizer = self.keep(self.conf(**keystone.password))
        self.want(synchronizer)
        self.wait_for(errors.Code.PLACEMENT_SYNCED)
        found = administrator.get(
            '/resource_providers/' + synchronizer.info().provider_uuid
        ).json()
        self.assertEqual(root, found['parent_provider_uuid'])
        # Nobody else may write there.
        self.assertRaises(
            exceptions.Unauthorized,
            service.adapter().get,
            '/resource_providers',
        )

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

"""The keeper and a real placement that comes and goes."""

import threading
import uuid as uuids

from keystoneauth1 import exceptions
from oslo_config import cfg
import testtools

from vsched_agent import conf as agent_conf
from vsched_agent.placement import desired
from vsched_agent.placement import factory
from vsched_lib.contract import errors
from vsched_lib.contract import placement as names
from vsched_lib.tests import openstack_services

State = names.PlacementState
#: Only a hang takes longer.
PATIENCE_S = 60


class Keeping(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.compute = 'node-' + uuids.uuid4().hex
        self.events = []
        self.told = threading.Condition()

    def conf(self, **options):
        conf = cfg.ConfigOpts()
        agent_conf.register_opts(conf)
        path = openstack_services.write_options(self, {
            'placement': {'sync_interval': 1, **options}})
        conf([], default_config_files=[path], default_config_dirs=[])
        return conf

    def tell(self, code, severity, detail):
        with self.told:
            self.events.append((code, detail))
            self.told.notify_all()

    def wait_for(self, code, times=1):
        with self.told:
            self.assertTrue(self.told.wait_for(
                lambda: [one for one, _ in self.events].count(code) >= times,
                PATIENCE_S), self.events)

    def keep(self, conf):
        keeper = factory.keeper(conf, self.tell)
        keeper.start()
        self.addCleanup(keeper.stop)
        return keeper

    def want(self, keeper, capacity_mcpu=1900, **more):
        keeper.want(desired.Desired(self.compute, capacity_mcpu, **more))


class TestKeeper(Keeping):

    def test_off_by_default(self):
        conf = cfg.ConfigOpts()
        agent_conf.register_opts(conf)
        conf([], default_config_files=[], default_config_dirs=[])
        self.assertIsNone(factory.keeper(conf, self.tell))

    def test_compute_comes_later(self):
        service = openstack_services.shared_placement(self)
        keeper = self.keep(self.conf(**service.options))
        self.want(keeper)
        self.wait_for(errors.Code.PLACEMENT_WAITING)
        service.make_compute(self.compute)
        self.wait_for(errors.Code.PLACEMENT_SYNCED)
        info = keeper.info()
        self.assertEqual((State.SYNCED, 1900, 0), (
            info.state, info.offered_mcpu, info.claimed_mcpu))
        self.assertEqual(2, len(self.events))

    def test_more_claimed_than_there_is_is_told_once(self):
        service = openstack_services.shared_placement(self)
        service.make_compute(self.compute)
        keeper = self.keep(self.conf(**service.options))
        self.want(keeper)
        self.wait_for(errors.Code.PLACEMENT_SYNCED)
        service.claim(str(uuids.uuid4()), keeper.info().provider_uuid,
                      **{names.RESOURCE_CLASS: 1000})
        self.want(keeper, 600)
        self.wait_for(errors.Code.PLACEMENT_OVERCLAIMED)
        keeper.look()
        keeper.look()
        self.assertEqual(2, len(self.events))

    def test_placement_goes_away_and_comes_back(self):
        service = self.useFixture(openstack_services.Placement(self))
        service.make_compute(self.compute)
        service.stop()
        keeper = self.keep(self.conf(**service.options))
        self.want(keeper)
        self.wait_for(errors.Code.PLACEMENT_FAILED)
        service.start()
        self.wait_for(errors.Code.PLACEMENT_SYNCED)
        service.stop()
        self.want(keeper, 1000)
        self.wait_for(errors.Code.PLACEMENT_FAILED, 2)
        # What was known stays known.
        self.assertEqual(1900, keeper.info().offered_mcpu)
        service.start()
        self.wait_for(errors.Code.PLACEMENT_SYNCED, 2)
        self.assertEqual(1000, keeper.info().offered_mcpu)
        self.assertEqual(4, len(self.events))


class TestKeystone(Keeping):

    def test_with_keystone(self):
        keystone = self.useFixture(openstack_services.Keystone(self))
        service = self.useFixture(openstack_services.Placement(
            self, keystone=keystone))
        keystone.add_service('placement', service.endpoint)
        administrator = keystone.adapter('placement')
        root = str(uuids.uuid4())
        administrator.post('/resource_providers', json={
            'uuid': root, 'name': self.compute})

        keeper = self.keep(self.conf(
            **{**keystone.password, 'password': 'wrong'}))
        self.want(keeper)
        self.wait_for(errors.Code.PLACEMENT_FAILED)
        self.assertEqual(State.FAILED, keeper.info().state)

        keeper = self.keep(self.conf(**keystone.password))
        self.want(keeper)
        self.wait_for(errors.Code.PLACEMENT_SYNCED)
        found = administrator.get('/resource_providers/' +
                                  keeper.info().provider_uuid).json()
        self.assertEqual(root, found['parent_provider_uuid'])
        # Nobody else may write there.
        self.assertRaises(
            exceptions.Unauthorized, service.adapter().get,
            '/resource_providers')

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

import os
import pathlib
import tempfile

from oslo_config import cfg
from oslotest import base

from vsched_agent import balloons
from vsched_agent import conf as agent_conf
from vsched_agent.hypervisor import simulated_guests
from vsched_agent import journal
from vsched_agent.tests import ballooning_host
from vsched_agent.tests import fakes


class WishesTest(base.BaseTestCase):

    def test_by_the_flavor(self):
        wishes = balloons.wishes_of(fakes.domain(
            1, balloon='auto', min_vcpus=2, weight=512))
        self.assertEqual((True, 2, 512), (
            wishes.auto, wishes.min_vcpus, wishes.weight))

    def test_no_is_the_default(self):
        for specs in ({}, {'balloon': 'off'}, {'balloon': 'perhaps'},
                      {'balloon': 'auto', 'weight': 'heavy'}):
            self.assertFalse(balloons.wishes_of(
                fakes.domain(1, **specs)).auto, specs)


class GiveBackTest(base.BaseTestCase):
    """Without an agent that runs."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.journal = journal.Journal(
            os.path.join(folder.name, 'agent.sqlite'))
        self.addCleanup(self.journal.close)
        self.guests = simulated_guests.SimulatedGuests()
        host = ballooning_host.Host(memory=self.journal, guests=self.guests)
        self.addCleanup(host.controller.stop, 0.1)
        self.one, self.two = host.add(1), host.add(2)
        host.pass_time(4)
        self.conf = cfg.ConfigOpts()
        agent_conf.register_opts(self.conf)
        self.conf([], default_config_files=[], default_config_dirs=[])
        self.conf.set_override('guest_timeout', 1.0, 'ballooning')
        for body in self.journal.balloons():
            # A process that is there, with threads that are not.
            self.journal.note_balloon(body['instance_uuid'], {
                **body, 'pid': os.getpid()})

    def give_back(self):
        return balloons.give_back(self.conf, self.guests, self.journal)

    def test_all(self):
        self.assertEqual(2, len(self.journal.balloons()))
        self.assertEqual([], self.give_back())
        self.assertEqual([], self.journal.balloons())
        for uuid in (self.one, self.two):
            self.assertEqual({0, 1, 2, 3}, self.guests.online(uuid))

    def test_one_that_does_not_answer(self):
        self.guests.mute.add(self.one)
        problem, = self.give_back()
        self.assertIn(self.one, problem)
        self.assertEqual({0, 1, 2, 3}, self.guests.online(self.two))
        self.assertEqual([self.one], [
            body['instance_uuid'] for body in self.journal.balloons()])

    def test_a_process_that_is_gone(self):
        body, *_ = self.journal.balloons()
        most = int(pathlib.Path('/proc/sys/kernel/pid_max').read_text())
        self.journal.note_balloon(
            body['instance_uuid'], {**body, 'pid': most + 1})
        self.assertEqual([], self.give_back())
        self.assertEqual([], self.journal.balloons())

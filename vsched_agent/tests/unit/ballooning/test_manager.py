# SPDX-License-Identifier: Apache-2.0

import os
import pathlib

from oslo_config import cfg
from oslotest import base

from vsched_agent.ballooning import manager
from vsched_agent import conf as agent_conf
from vsched_agent.tests import ballooning_host
from vsched_agent.tests import fakes
from vsched_agent.tests import journals
from vsched_agent.tests import simulated_guests


class FlavorSettingsTest(base.BaseTestCase):
    def test_by_the_flavor(self):
        flavor = manager.flavor_settings(
            fakes.domain(1, balloon='auto', min_vcpus=2, weight=512)
        )
        self.assertEqual(
            (True, 2, 512), (flavor.auto, flavor.min_vcpus, flavor.weight)
        )

    def test_no_is_the_default(self):
        for specs in (
            {},
            {'balloon': 'off'},
            {'balloon': 'perhaps'},
            {'balloon': 'auto', 'weight': 'heavy'},
        ):
            self.assertFalse(
                manager.flavor_settings(fakes.domain(1, **specs)).auto, specs
            )


class GiveBackTest(journals.JournalCase):
    """Without an agent that runs."""

    def setUp(self):
        super().setUp()
        self.guests = simulated_guests.SimulatedGuests()
        host = ballooning_host.Host(store=self.journal, guests=self.guests)
        self.addCleanup(host.loop.stop, 0.1)
        self.one, self.two = host.add(1), host.add(2)
        host.pass_time(4)
        self.conf = cfg.ConfigOpts()
        agent_conf.register_opts(self.conf)
        self.conf([], default_config_files=[], default_config_dirs=[])
        self.conf.set_override('guest_timeout', 1.0, 'ballooning')
        for body in self.journal.balloons():
            # A process that is there, with threads that are not.
            self.journal.note_balloon(
                body['instance_uuid'], {**body, 'pid': os.getpid()}
            )

    def give_back(self):
        return manager.give_back(self.conf, self.guests, self.journal)

    def test_all(self):
        self.assertEqual(2, len(self.journal.balloons()))
        self.assertEqual([], self.give_back())
        self.assertEqual([], self.journal.balloons())
        for uuid in (self.one, self.two):
            self.assertEqual({0, 1, 2, 3}, self.guests.online(uuid))

    def test_one_that_does_not_answer(self):
        self.guests.mute.add(self.one)
        (problem,) = self.give_back()
        self.assertIn(self.one, problem)
        self.assertEqual({0, 1, 2, 3}, self.guests.online(self.two))
        self.assertEqual(
            [self.one],
            [body['instance_uuid'] for body in self.journal.balloons()],
        )

    def test_without_records(self):
        for uuid in (self.one, self.two):
            self.journal.forget_balloon(uuid)
        self.guests.mute.add(self.one)
        self.assertEqual(
            [],
            manager.give_back(
                self.conf,
                self.guests,
                self.journal,
                [fakes.domain(1, 4), fakes.domain(2, 4)],
            ),
        )
        self.assertEqual({0}, self.guests.online(self.one))
        self.assertEqual({0, 1, 2, 3}, self.guests.online(self.two))

    def test_one_whose_answer_is_hostile(self):
        ask = self.guests.get_vcpus

        def fail(uuid, timeout_s):
            if uuid == self.one:
                raise OverflowError('cannot convert float infinity to int')
            return ask(uuid, timeout_s)

        self.guests.get_vcpus = fail
        (problem,) = self.give_back()
        self.assertIn(self.one, problem)
        self.assertEqual({0, 1, 2, 3}, self.guests.online(self.two))
        self.assertEqual(
            [self.one],
            [body['instance_uuid'] for body in self.journal.balloons()],
        )

    def test_a_process_that_has_ended(self):
        body, *_ = self.journal.balloons()
        most = int(pathlib.Path('/proc/sys/kernel/pid_max').read_text())
        self.journal.note_balloon(
            body['instance_uuid'], {**body, 'pid': most + 1}
        )
        self.assertEqual([], self.give_back())
        self.assertEqual([], self.journal.balloons())

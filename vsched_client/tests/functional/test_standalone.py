# SPDX-License-Identifier: Apache-2.0

"""Commands against vsched-standalone, whose agent decides by its own rules.

Its kernel and hypervisor are simulated: nothing of this host is changed.
"""

import time

import fixtures
from oslotest import base

from vsched_agent.tests import fakes
from vsched_client.tests import entry_points
from vsched_client.tests import fake_nova
from vsched_client.tests.functional import standalone
from vsched_client.tests import scenario
from vsched_client.tests import shell

#: Only a hang takes longer.
_PATIENCE_S = 180


class Case(base.BaseTestCase):
    """Runs commands."""

    def start(self, *domains, **more):
        """Start the services with these instances."""
        self.useFixture(fixtures.FakeLogger())
        self.standalone = self.useFixture(
            standalone.Standalone(domains, **more)
        )

    def openstack(self, *words, code=0):
        found = shell.run(*words, url=self.standalone.url)
        self.assertEqual(code, found.code, found)
        return found

    def until(self, *words):
        """Wait until a command has something to show; return that."""
        give_up = time.monotonic() + _PATIENCE_S
        while True:
            found = shell.run(*words, '-f', 'json', url=self.standalone.url)
            if found.code == 0 and found.json:
                return found.json
            if time.monotonic() > give_up:
                self.fail('%s: %s' % (words, found))
            time.sleep(0.05)


class TestReservations(Case):
    def setUp(self):
        super().setUp()
        self.domain = fakes.domain(1, vcpus=2)
        self.start(self.domain)

    def reservation(self, verb, *words, code=0):
        return self.openstack(
            *('cpu', 'reservation', verb, self.domain.uuid),
            *(*words, '--wait', '-f', 'json'),
            code=code,
        )

    def held(self):
        return {
            tid: (one.runtime_us, one.period_us)
            for tid, one in self.standalone.backend.held.items()
        }

    def test_the_agent_applies_or_refuses(self):
        self.until('cpu', 'host', 'list')
        found = self.reservation(
            'create', '--share', '60%', '--period', '10ms'
        ).json
        self.assertEqual(
            ('applied', 'deadline'),
            (found['state'], found['enforced']['backend']),
        )
        self.assertEqual({(6_000, 10_000)}, set(self.held().values()))
        # Two vCPUs of 95 % are more than 1.8 CPUs.
        found = self.reservation('set', '--share', '95%', code=3)
        self.assertEqual('refused', found.json['state'])
        self.assertIn('vsched.reservation.does_not_fit', found.err)
        self.assertIn('1800', found.err)
        # It keeps what it had.
        self.assertEqual({(6_000, 10_000)}, set(self.held().values()))
        (host,) = self.openstack('cpu', 'host', 'list', '-f', 'json').json
        self.assertEqual(1800, host['capacity_mcpu'])
        found = self.reservation('unset').json
        self.assertEqual('released', found['state'])
        self.assertEqual({}, self.held())


class TestEveryCommand(Case):
    """What each of them writes, in each format."""

    def each_command(self, form):
        reserved = fakes.domain(
            1, vcpus=1, cpu_runtime_us=2_000, cpu_period_us=10_000
        )
        plain = fakes.domain(2, vcpus=2, balloon='auto')
        self.start(reserved, plain, profiles=True)
        for words in (
            ('reservation', 'show', reserved.uuid),
            ('balloon', 'show', plain.uuid),
            ('usage', 'show', reserved.uuid),
            ('usage', 'show', '--of', 'hosts'),
            ('profile', 'show', scenario.HOST),
            ('profile', 'show', scenario.HOST, '--kind', 'overhead'),
            ('event', 'list'),
        ):
            self.until('cpu', *words)
        compute = fake_nova.FakeNova(
            **{scenario.FLAVOR: dict(scenario.FLAVOR_SPECS)}
        )
        answered = scenario.run(
            lambda words: shell.run(
                *words, url=self.standalone.url, compute=compute
            ),
            reserved.uuid,
            plain.uuid,
            placement=False,
            form=form,
        )
        self.assertEqual(sorted(entry_points.commands()), sorted(answered))

    def test_in_json(self):
        self.each_command('json')

    def test_in_yaml(self):
        self.each_command('yaml')

    def test_in_csv(self):
        self.each_command('csv')

    def test_in_a_table(self):
        self.each_command(scenario.TABLE)

# SPDX-License-Identifier: Apache-2.0

"""An agent's certificates as traits, on a real Nova and placement."""

from fractions import Fraction
import time
from unittest import mock

import fixtures
from oslo_config import cfg

from vsched_agent import conf as agent_conf
from vsched_agent.enforcement import budget_expiry
from vsched_agent.host import kernel
from vsched_agent.profiling import manager as host_profiles
from vsched_agent.profiling import withdrawal
from vsched_agent import service
from vsched_agent.tests import agent_parts
from vsched_agent.tests import fakes
from vsched_agent.tests import profiles
from vsched_lib.contract import certification
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import placement as names
from vsched_lib.contract import rpc
from vsched_lib.model import reservation
from vsched_standalone.tests.functional.nova import cloud
from vsched_standalone.tests.functional.nova import test_claims

_CERTIFIED = names.certified_trait('deadline', 20_000, 20_000)
#: As many reserved threads the host was measured with.
_THREADS = 5
_CHECK_US = 500


class TestCertificates(test_claims.Claiming):
    """The agent's passes are real; threads, guests and looks are made up."""

    def setUp(self):
        # The frame forbids tests to ask for the kernel's name.
        self.kernel = kernel.KernelFacts.read()
        super().setUp()
        self.start_compute('node1')
        self.ladder = agent_parts.Ladder(
            fakes.FakeBackend(reservation.Backend.DEADLINE)
        )
        self.ladder.found = budget_expiry.CheckStatus(_THREADS)
        self.collector = fakes.FakeCollector()
        for owner, name, new in (
            (kernel.KernelFacts, 'read', lambda: self.kernel),
            (service.platform, 'release', lambda: self.kernel.release),
            (service.backends, 'Ladder', lambda conf: self.ladder),
            (
                service.backends.capacity,
                'KernelCapacity',
                lambda reserve_mcpu: agent_parts.Capacity(Fraction(19, 10)),
            ),
            (
                service.usage,
                'meter_of',
                lambda *arguments: agent_parts.Meter(),
            ),
            (service.privileged, 'use', lambda conf: None),
            (service.placement_factory, 'client', lambda conf: self.claims),
            (withdrawal, 'RESTORE_S', 0.0),
            (
                collector_rpc.CollectorClient,
                'report',
                lambda client, report: self.collector.report(report),
            ),
        ):
            patch = mock.patch.object(owner, name, new)
            patch.start()
            self.addCleanup(patch.stop)
        self.agent = service.Agent(
            self.options(),
            rpc.get_transport(self.conf, 'fake://'),
            fakes.FakeHypervisor(),
        )
        self.measured()
        self.agent.start()
        self.addCleanup(self.agent.stop)

    def options(self):
        self.conf = cfg.ConfigOpts()
        agent_conf.register_opts(self.conf)
        self.conf([], default_config_files=[], default_config_dirs=[])
        for group, name, value in (
            ('agent', 'state_path', self.useFixture(fixtures.TempDir()).path),
            ('agent', 'host', 'node1'),
            ('agent', 'interval', 0.1),
            ('enforcement', 'budget_check_us', _CHECK_US),
            ('placement', 'auth_type', 'admin_token'),
        ):
            self.conf.set_override(name, value, group)
            # Groups are shared by all that register them.
            self.addCleanup(self.conf.clear_override, name, group)
        return self.conf

    def measured(self):
        """The host has an error profile that certifies 2 %."""
        facts = host_profiles.facts(self.kernel, self.conf)
        host_profiles.error_profiles(self.conf).keep(
            profiles.profile(
                profiles.point([0] * 180, period_us=20_000),
                version=1,
                **{
                    **facts,
                    'features': {
                        **facts['features'],
                        certification.THREADS: _THREADS,
                    },
                },
            )
        )

    def await_trait(self, there):
        """Wait until placement says so; return all traits of the host."""
        give_up = time.monotonic() + cloud.PATIENCE_S
        while time.monotonic() < give_up:
            own = self.claims.provider(names.provider_name('node1'))
            found = own and self.claims.traits(own.uuid)[1]
            if found and there == (_CERTIFIED in found):
                return found
            time.sleep(0.1)
        self.fail('%s, wanted: %s; found: %s' % (_CERTIFIED, there, found))

    def codes(self):
        return [
            event.code
            for report in self.collector.reports
            for event in report.events
            if event.code
            in (
                errors.Code.CERTIFICATES_WITHDRAWN,
                errors.Code.CERTIFICATES_GRANTED,
            )
        ]

    def test_a_certificate_that_is_withdrawn_attracts_nobody(self):
        before = self.await_trait(True)
        flavor = self.promising(6_000, max_alloc_error_pct='3')
        server = self.active(flavor)
        own = self.claims.provider(names.provider_name('node1')).uuid
        self.ladder.found = budget_expiry.CheckStatus(_THREADS + 1)
        after = self.await_trait(False)
        self.assertEqual(
            {one for one in before if 'CERTIFIED' not in one}, set(after)
        )
        self.assertEqual('ERROR', self.settled(self.boot(flavor))['status'])
        # Who is there stays, and others may still come.
        self.assertEqual({server['id']: 300}, self.claimed(own))
        self.active(self.promising(6_000))
        self.assertEqual([errors.Code.CERTIFICATES_WITHDRAWN], self.codes())
        self.ladder.found = budget_expiry.CheckStatus(_THREADS)
        self.assertEqual(before, self.await_trait(True))
        self.active(flavor)

    def test_a_helper_that_is_saturated_costs_the_certificate(self):
        self.await_trait(True)
        self.ladder.found = budget_expiry.CheckStatus(_THREADS, True)
        self.await_trait(False)

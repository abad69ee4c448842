# SPDX-License-Identifier: Apache-2.0

import fixtures
from oslo_config import cfg
from oslotest import base

from vsched_agent import conf as agent_conf
from vsched_agent.enforcement import budget_expiry
from vsched_agent.profiling import manager as host_profiles
from vsched_agent.profiling import withdrawal
from vsched_agent.tests import profiles
from vsched_lib.contract import certification
from vsched_lib.contract import errors

CheckStatus = budget_expiry.CheckStatus


class TestWithdrawal(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.judge = withdrawal.Withdrawal()
        self.profile = profiles.profile(features={certification.THREADS: 8})

    def take(self, looks, now_s):
        told = self.judge.take(*looks, self.profile, now_s)
        return told and told.code

    def test_as_many_as_measured(self):
        self.assertIsNone(self.take(CheckStatus(8), 0.0))
        self.assertFalse(self.judge.withdrawn)

    def test_one_more(self):
        told = self.judge.take(*CheckStatus(9), self.profile, 0.0)
        self.assertEqual(errors.Code.CERTIFICATES_WITHDRAWN, told.code)
        self.assertIn(
            'with 8 reserved threads, and the host has 9', told.detail
        )
        self.assertEqual(
            (9, 8),
            (told.figures['threads'], told.figures['certified_threads']),
        )
        self.assertTrue(self.judge.withdrawn)
        # Told once.
        self.assertIsNone(self.take(CheckStatus(9), 1.0))

    def test_a_saturated_helper(self):
        told = self.judge.take(*CheckStatus(1, True), self.profile, 0.0)
        self.assertEqual(errors.Code.CERTIFICATES_WITHDRAWN, told.code)
        self.assertIn('used up its reservation', told.detail)

    def test_granted_again_after_a_while(self):
        self.take(CheckStatus(9), 0.0)
        self.assertIsNone(self.take(CheckStatus(8), 10.0))
        self.assertIsNone(self.take(CheckStatus(8), 69.0))
        self.assertEqual(
            errors.Code.CERTIFICATES_GRANTED, self.take(CheckStatus(8), 70.0)
        )
        self.assertFalse(self.judge.withdrawn)

    def test_a_relapse_begins_anew(self):
        self.take(CheckStatus(9), 0.0)
        self.take(CheckStatus(8), 10.0)
        self.take(CheckStatus(9), 60.0)
        self.assertIsNone(self.take(CheckStatus(8), 70.0))
        self.assertIsNone(self.take(CheckStatus(8), 129.0))
        self.assertEqual(
            errors.Code.CERTIFICATES_GRANTED, self.take(CheckStatus(8), 130.0)
        )

    def test_a_profile_that_does_not_tell(self):
        self.profile = profiles.profile(features={})
        self.assertIsNone(self.take(CheckStatus(5), 0.0))
        self.assertEqual(
            errors.Code.CERTIFICATES_WITHDRAWN, self.take(CheckStatus(6), 0.0)
        )

    def test_nothing_was_measured(self):
        self.profile = None
        self.assertIsNone(self.take(CheckStatus(99, True), 0.0))
        self.assertFalse(self.judge.withdrawn)


class TestHostProfiles(base.BaseTestCase):
    """What becomes of traits, margins and what schedulers are told."""

    def setUp(self):
        super().setUp()
        folder = self.useFixture(fixtures.TempDir()).path
        conf = cfg.ConfigOpts()
        agent_conf.register_opts(conf)
        conf([], default_config_files=[], default_config_dirs=[])
        conf.set_override('state_path', folder, 'agent')
        self.addCleanup(conf.clear_override, 'state_path', 'agent')
        self.check_status = CheckStatus(3)
        facts = {
            **profiles.FACTS,
            'features': {**profiles.FACTS['features'], 'budget_check_us': 500},
        }
        self.host = host_profiles.HostProfiles(
            conf, facts, lambda: self.check_status
        )
        self.addCleanup(self.host.close)
        self.store = host_profiles.error_profiles(conf)
        self.features = {**facts['features'], certification.THREADS: 5}
        self.first = self.keep(1, 0)
        self.assertEqual([(self.first, [])], self.host.poll())

    def keep(self, version, error_ppm):
        profile = profiles.profile(
            profiles.point([error_ppm] * 180),
            version=version,
            features=self.features,
        )
        self.store.keep(profile)
        return profile

    def certified(self):
        known = bool(self.host.margins.certified())
        self.assertEqual(known, bool(self.host.certified()))
        self.assertEqual(500 if known else 0, self.host.budget_check_us)
        return known

    def test_withdrawn_and_granted(self):
        self.assertIsNone(self.host.judge(0.0))
        self.assertTrue(self.certified())
        self.check_status = CheckStatus(6)
        self.assertEqual(
            errors.Code.CERTIFICATES_WITHDRAWN, self.host.judge(1.0).code
        )
        self.assertFalse(self.certified())
        self.check_status = CheckStatus(5)
        self.assertIsNone(self.host.judge(2.0))
        self.assertFalse(self.certified())
        self.assertEqual(
            errors.Code.CERTIFICATES_GRANTED, self.host.judge(62.0).code
        )
        self.assertTrue(self.certified())

    def test_nothing_is_judged_where_budgets_are_left_to_the_tick(self):
        self.check_status = CheckStatus(99, True)
        self.host._check_us = 0
        self.assertIsNone(self.host.judge(0.0))

    def test_a_new_profile_comes_with_its_changes(self):
        second = self.keep(2, -50_000)
        ((profile, changes),) = self.host.poll()
        self.assertEqual(second, profile)
        (change,) = changes
        self.assertEqual(
            (0, 50_000, 'deadline'),
            (change.before_ppm, change.after_ppm, change.backend),
        )
        self.assertEqual([], self.host.poll())

# SPDX-License-Identifier: Apache-2.0

import argparse
import contextlib
import csv
import io
import json
import os
import tempfile
from unittest import mock

from oslo_config import cfg
from oslotest import base

from vsched_agent.cmd import agent as command
from vsched_agent.cmd import profile
from vsched_agent import conf as agent_conf
from vsched_agent.enforcement import diagnosis
from vsched_agent.host import kernel
from vsched_agent.profiling.error import plan
from vsched_agent.profiling import manager as host_profiles
from vsched_agent.tests import profiles
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS


class TestOrder(base.BaseTestCase):
    def order(self, *words, usable=(DEADLINE, CFS)):
        parser = argparse.ArgumentParser()
        profile.add_commands(parser.add_subparsers())
        return profile.order_of(
            parser.parse_args(['profile', 'error', *words]), usable, 2
        )

    def test_the_whole_benchmark_by_default(self):
        found = self.order()
        self.assertEqual(
            ((DEADLINE, CFS), 18, 180, 4, False),
            (
                found.backends,
                len(found.shares_ppm),
                found.windows,
                found.contend,
                found.quick,
            ),
        )

    def test_quick(self):
        found = self.order('--quick')
        self.assertEqual(
            (plan.QUICK_SHARES_PPM, plan.QUICK_WINDOWS, True),
            (found.shares_ppm, found.windows, found.quick),
        )

    def test_as_asked(self):
        found = self.order(
            '--shares',
            '1-3,20.5',
            '--backends',
            'cfs',
            '--contend',
            '0',
            '--periods-us',
            '10000,20000',
            '--seconds',
            '7',
            '--in-guest',
        )
        self.assertEqual(
            (
                (10_000, 20_000, 30_000, 205_000),
                (CFS,),
                0,
                (10_000, 20_000),
                7,
                True,
            ),
            (
                found.shares_ppm,
                found.backends,
                found.contend,
                found.periods_us,
                found.windows,
                found.in_guest,
            ),
        )

    def test_what_can_not_be(self):
        for words, text in (
            (
                ('--backends', 'cfs,rtds'),
                'cannot use rtds; it can use deadline, cfs',
            ),
            (('--quick', '--seconds', '3'), 'leave --seconds out'),
            (('--shares', '200'), 'share: 2000000'),
        ):
            problem = self.assertRaises(ValueError, self.order, *words)
            self.assertIn(text, str(problem))

    def test_what_can_not_be_read(self):
        for words in (
            ('--shares', 'x'),
            ('--shares', '1-'),
            ('--periods-us', '1,,2'),
        ):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertRaises(SystemExit, self.order, *words)
            self.assertIn('accepted is e.g.', said.getvalue())


class TestShow(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.config_file = os.path.join(folder.name, 'vsched.conf')
        with open(self.config_file, 'w', encoding='utf-8') as file:
            file.write('[agent]\nstate_path = %s\n' % folder.name)
        patch = mock.patch('vsched_agent.privileged.use', lambda conf: None)
        patch.start()
        self.addCleanup(patch.stop)
        self.conf = cfg.ConfigOpts()
        agent_conf.register_opts(self.conf)
        self.conf(['--config-file', self.config_file], default_config_dirs=[])
        self.store = host_profiles.error_profiles(self.conf)

    def keep(self, *points, **changes):
        found = profiles.profile(*points, **changes)
        self.store.keep(found)
        return found

    def main(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main(
                ['--config-file', self.config_file, 'profile', *words]
            )
        return code, out.getvalue(), err.getvalue()

    def test_nothing_yet(self):
        for words in (('show',), ('plot',)):
            code, _, err = self.main(*words)
            self.assertEqual(1, code)
            self.assertIn('no such profile', err)

    def test_as_a_table(self):
        self.keep(
            profiles.point([-20_000] * 180), profiles.point([0] * 6, 'cfs')
        )
        code, out, _ = self.main('show')
        self.assertEqual(0, code)
        self.assertIn('Linux 6.18.0, 2 CPUs, tick 4000 us', out)
        self.assertIn('-2.00%', out)
        self.assertIn('unknown: 6 samples, it takes 161', out)

    def test_as_json_and_csv(self):
        self.keep(profiles.point([1] * 3))
        second = self.keep(profiles.point([2] * 3), version=2)
        _, out, _ = self.main('show', '--format', 'json')
        self.assertEqual(second.uuid, json.loads(out)['uuid'])
        _, out, _ = self.main('show', '--version', '1', '--format', 'csv')
        (row,) = csv.DictReader(io.StringIO(out))
        self.assertEqual(('deadline', '1'), (row['backend'], row['mean_ppm']))

    def test_drawn(self):
        self.keep(profiles.point([-20_000] * 180))
        code, out, _ = self.main(
            'plot',
            '--figure',
            'mean',
            '--format',
            'png',
            '--output',
            self.folder,
        )
        path = os.path.join(self.folder, 'alert-mean.png')
        self.assertEqual((0, path), (code, out.strip()))
        with open(path, 'rb') as file:
            self.assertEqual(b'\x89PNG', file.read(4))

    def test_what_the_doctor_says(self):
        found = profile.finding(self.conf)
        self.assertEqual(diagnosis.Level.NOTE, found.level)
        self.assertIn('never measured', found.text)
        self.keep(profiles.point([0] * 180))
        found = profile.finding(self.conf)
        self.assertEqual(diagnosis.Level.NOTE, found.level)
        self.assertIn('another kernel', found.text)
        facts = host_profiles.facts(kernel.KernelFacts.read(), self.conf)
        self.keep(
            profiles.point([-15_000] * 180),
            profiles.point([90_000] * 180, share_pct=1),
            version=2,
            **facts,
        )
        found = profile.finding(self.conf)
        self.assertEqual(diagnosis.Level.OK, found.level)
        self.assertIn('deadline errs by up to 1.50 %', found.text)
        self.keep(profiles.point([0] * 9, contenders=0), version=3, **facts)
        self.assertIn('no share', profile.finding(self.conf).text)

# SPDX-License-Identifier: Apache-2.0

import os

import fixtures
from oslo_config import cfg
from oslotest import base

from vsched_agent import conf as agent_conf
from vsched_agent import privileged
from vsched_agent.profiling import job_orders
from vsched_lib.contract import messages


def order(**parameters):
    return messages.JobOrder(
        'u-1',
        messages.JobKind.PROFILE_ERROR,
        messages.JobWanted.RUN,
        1,
        parameters,
    )


class TestOrders(base.BaseTestCase):
    def test_parameters_become_words(self):
        self.assertEqual(
            [
                'error',
                '--json',
                '--watch-input',
                '--run',
                'u-1',
                '--backends',
                'deadline,cfs',
                '--contend',
                '0',
                '--in-guest',
                '--periods-us',
                '10000,20000',
                '--seconds',
                '60',
                '--shares',
                '1,20.5',
            ],
            job_orders.arguments(
                order(
                    shares_pct=[1, 20.5],
                    backends=['deadline', 'cfs'],
                    periods_us=[10_000, 20_000],
                    seconds=60,
                    contend=0,
                    in_guest=True,
                    quick=False,
                )
            ),
        )

    def test_each_kind_has_its_run(self):
        for kind in messages.JobKind:
            words = job_orders.arguments(
                messages.JobOrder(
                    'u-1', kind, messages.JobWanted.RUN, 1, {'quick': True}
                )
            )
            self.assertEqual(
                [
                    kind.removeprefix('profile-'),
                    '--json',
                    '--watch-input',
                    '--run',
                    'u-1',
                    '--quick',
                ],
                words,
            )

    def test_one_that_is_not_known_is_not_run(self):
        self.assertRaises(ValueError, job_orders.arguments, order(shell='ls'))

    def test_a_run_reads_the_files_of_its_agent(self):
        folder = self.useFixture(fixtures.TempDir()).path
        paths = [os.path.join(folder, name) for name in ('a.conf', 'b.conf')]
        for path, text in zip(
            paths,
            (
                '[agent]\nreserve_mcpu = 300\n',
                '[%s]\nhelper_command = sudo -n x\n'
                % (privileged.SECTIONS[0]),
            ),
            strict=True,
        ):
            with open(path, 'w', encoding='ascii') as file:
                file.write(text)
        more = os.path.join(folder, 'more')
        os.mkdir(more)
        words = job_orders.command(
            self.conf(
                '--config-file',
                os.path.relpath(paths[0]),
                '--config-file',
                paths[1],
                '--config-dir',
                more,
            )
        )
        self.assertEqual(
            (
                '-m',
                'vsched_agent.cmd.agent',
                '--config-file',
                paths[0],
                '--config-file',
                paths[1],
                '--config-dir',
                more,
                'profile',
            ),
            words[-9:],
        )
        again = self.conf(*words[-7:-1])
        privileged.use(again)
        self.assertEqual(300, again.agent.reserve_mcpu)
        self.assertEqual(
            'sudo -n x', again[privileged.SECTIONS[0]].helper_command
        )

    def test_an_agent_without_files_has_runs_without(self):
        self.assertEqual(
            ('-m', 'vsched_agent.cmd.agent', 'profile'),
            job_orders.command(self.conf())[-3:],
        )

    def conf(self, *words):
        conf = cfg.ConfigOpts()
        agent_conf.register_opts(conf)
        conf(words, default_config_files=[], default_config_dirs=[])
        return conf

    def test_what_one_is_told_is_none_of_anothers(self):
        # oslo.config's own copy of a group shares its values.
        one, other = cfg.ConfigOpts(), cfg.ConfigOpts()
        for conf in (one, other):
            agent_conf.register_opts(conf)
            conf([], default_config_files=[], default_config_dirs=[])
        before = other.agent.state_path
        one.set_override('state_path', '/elsewhere', 'agent')
        self.assertEqual(before, other.agent.state_path)
        self.assertEqual('/elsewhere', one.agent.state_path)

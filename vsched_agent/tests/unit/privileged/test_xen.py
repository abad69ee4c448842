# SPDX-License-Identifier: Apache-2.0

"""What the helper of Xen hosts starts, and what it refuses."""

import errno
import os
import pathlib

import ddt
import fixtures
from oslotest import base

from vsched_agent.privileged import xen
from vsched_agent.tests import fake_xl
from vsched_agent.tests import in_process

_VALUES = (0, 20_000, 12_000, False)


@ddt.ddt
class TestCommands(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.xl = self.useFixture(fake_xl.FakeXl())
        self.xl.start(7, 2)

    def test_info(self):
        self.assertEqual(
            {
                'nr_cpus': '2',
                'xen_version': '4.17.5',
                'xen_scheduler': 'rtds',
                'xen_commandline': 'placeholder dom0_mem=1536M sched=rtds',
            },
            xen.info(),
        )

    def test_parameters(self):
        self.xl.vcpus[7, 1] = [20_000, 12_000, False]
        self.assertEqual(
            {
                'pools': 1,
                'vcpus': [
                    (0, 0, 10_000, 4_000, True),
                    (7, 0, 10_000, 4_000, True),
                    (7, 1, 20_000, 12_000, False),
                ],
            },
            xen.rtds_parameters(),
        )

    def test_another_scheduler_has_none(self):
        self.xl.scheduler = 'credit2'
        self.assertEqual({'pools': 0, 'vcpus': []}, xen.rtds_parameters())

    def test_names_are_not_trusted(self):
        self.xl.names[7] = 'a 3 0 10 10 yes'
        self.assertEqual(
            {(0, 0), (7, 0), (7, 1)},
            {one[:2] for one in xen.rtds_parameters()['vcpus']},
        )

    @ddt.data('x\na 7 0 10 10 yes', 'x\nwhatever', 'x\nCpupool P: sched=RTDS2')
    def test_what_is_not_known_is_refused(self, name):
        self.xl.names[7] = name
        self.assertRaises(OSError, xen.rtds_parameters)

    def test_one_command_sets_all_vcpus(self):
        self.assertEqual('', xen.set_rtds(7, [_VALUES, (1, 10_000, 10, True)]))
        self.assertEqual(
            (
                *('sched-rtds', '-d', '7'),
                *('-v', '0', '-p', '20000', '-b', '12000', '-e', '0'),
                *('-v', '1', '-p', '10000', '-b', '10', '-e', '1'),
            ),
            self.xl.commands[-1],
        )
        self.assertEqual([20_000, 12_000, False], self.xl.vcpus[7, 0])

    def test_as_many_as_a_command_takes(self):
        self.xl.cpus = 6
        self.xl.start(7, 9)
        self.assertEqual(
            '',
            xen.set_rtds(
                7, [(index, 20_000, 12_000, False) for index in range(9)]
            ),
        )
        self.assertEqual(
            3, len([one for one in self.xl.commands if '-d' in one])
        )
        self.assertEqual(
            [[20_000, 12_000, False]] * 9,
            [self.xl.vcpus[7, index] for index in range(9)],
        )

    def test_the_sum_of_all_domains_is_bounded(self):
        """Also of the first domain, and of those that no agent manages."""
        self.xl.start(8)
        before = {key: list(one) for key, one in self.xl.vcpus.items()}
        refused = self.assertRaises(
            OSError, xen.set_rtds, 7, [(0, 10_000, 8_001, False)]
        )
        self.assertEqual(errno.EBUSY, refused.errno)
        self.assertEqual(
            'the budgets of all vCPUs would be 2001 mcpu of 2000: 1201 of '
            'domain 7, and 800 of all others',
            refused.strerror,
        )
        self.assertEqual(before, self.xl.vcpus)
        self.assertEqual('', xen.set_rtds(7, [(0, 10_000, 8_000, False)]))

    def test_less_passes_where_there_is_too_much(self):
        self.xl.start(8, 5)
        self.assertEqual('', xen.set_rtds(7, [(0, 10_000, 3_000, False)]))
        self.assertEqual('', xen.set_rtds(7, [(0, 20_000, 6_000, True)]))
        refused = self.assertRaises(
            OSError, xen.set_rtds, 7, [(0, 10_000, 3_001, False)]
        )
        self.assertEqual(errno.EBUSY, refused.errno)

    def test_without_the_number_of_cpus_nothing_grows(self):
        self.patch(xen, 'INFO_KEYS', frozenset())
        self.assertRaises(OSError, xen.set_rtds, 7, [_VALUES])
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[7, 0])

    def test_what_a_whole_domain_was_given_is_not_bounded(self):
        self.xl.vcpus[7, 1] = [2_000_000_000, 1, False]
        self.assertIn(
            (7, 1, 2_000_000_000, 1, False), xen.rtds_parameters()['vcpus']
        )

    def test_a_failure_is_returned(self):
        self.assertIn('invalid domain', xen.set_rtds(8, [_VALUES]))

    @ddt.data(
        (0, [_VALUES]),
        (-1, [_VALUES]),
        (0x7FF0, [_VALUES]),
        ('7', [_VALUES]),
        (True, [_VALUES]),
        (7, []),
        (7, [_VALUES, _VALUES]),
        (7, [(index, 20_000, 12_000, False) for index in range(513)]),
        (7, [(-1, 20_000, 12_000, False)]),
        (7, [(512, 20_000, 12_000, False)]),
        (7, [('all', 20_000, 12_000, False)]),
        (7, [(0, 2**31, 12_000, False)]),
        (7, [(0, 9, 9, False)]),
        (7, [(0, 20_000, 20_001, False)]),
        (7, [(0, 20_000, 9, False)]),
        (7, [(0, 20_000, 12_000.0, False)]),
        (7, [(0, 20_000, 12_000, 1)]),
        (7, [(0, '20000 -d 0', 12_000, False)]),
    )
    @ddt.unpack
    def test_out_of_bounds(self, domid, values):
        self.assertRaises(PermissionError, xen.set_rtds, domid, values)
        self.assertEqual([], self.xl.commands)

    def test_pools_are_not_touched(self):
        """To destroy a pool of RTDS panics the hypervisor."""
        xen.info()
        xen.rtds_parameters()
        xen.set_rtds(7, [_VALUES])
        self.assertEqual(
            {'info', 'sched-rtds'}, {one[0] for one in self.xl.commands}
        )


@ddt.ddt
class TestCredit(base.BaseTestCase):
    """Weights and caps of domains."""

    def setUp(self):
        super().setUp()
        self.xl = self.useFixture(fake_xl.FakeXl(scheduler='credit2'))
        self.xl.start(7, 2)

    @ddt.data('credit2', 'credit')
    def test_parameters(self, name):
        self.xl.scheduler = name
        self.xl.domains[7] = [600, 120]
        self.assertEqual(
            {'pools': 1, 'domains': [(0, 256, 0), (7, 600, 120)]},
            xen.credit_parameters(name),
        )

    def test_another_scheduler_has_none(self):
        self.assertEqual(
            {'pools': 0, 'domains': []}, xen.credit_parameters('credit')
        )

    def test_names_are_not_trusted(self):
        self.xl.names[7] = 'a 3 10 10'
        self.assertEqual(
            [0, 7],
            [one[0] for one in xen.credit_parameters('credit2')['domains']],
        )

    @ddt.data('x\na 7 10 10', 'x\nwhatever', 'x\nCpupool P: sched=RTDS')
    def test_what_is_not_known_is_refused(self, name):
        self.xl.names[7] = name
        self.assertRaises(OSError, xen.credit_parameters, 'credit2')

    def test_both_by_one_command(self):
        self.assertEqual('', xen.set_credit('credit2', 7, 600, 60))
        self.assertEqual(
            ('sched-credit2', '-d', '7', '-w', '600', '-c', '60'),
            self.xl.commands[-1],
        )

    def test_the_sum_of_all_domains_is_bounded(self):
        self.xl.start(8)
        refused = self.assertRaises(
            OSError, xen.set_credit, 'credit2', 7, 1_489, 0
        )
        self.assertEqual(errno.EBUSY, refused.errno)
        self.assertEqual(
            'the weights of all domains would be 2001 mcpu of 2000: 1489 of '
            'domain 7, and 512 of all others',
            refused.strerror,
        )
        self.assertEqual([256, 0], self.xl.domains[7])
        # A weight counts as far as the cap lets it.
        self.assertEqual('', xen.set_credit('credit2', 7, 5_000, 148))

    def test_less_passes_where_there_is_too_much(self):
        for domid in range(8, 17):
            self.xl.start(domid)
        self.assertEqual('', xen.set_credit('credit2', 7, 200, 0))
        self.assertRaises(OSError, xen.set_credit, 'credit2', 7, 201, 0)

    def test_a_failure_is_returned(self):
        self.xl.problem = 'xl: Device or resource busy', 7
        self.assertIn('busy', xen.set_credit('credit2', 7, 600, 60))

    @ddt.data(
        ('rtds', 7, 600, 60),
        ('credit2 -s', 7, 600, 60),
        (None, 7, 600, 60),
        ('credit2', 0, 600, 60),
        ('credit2', 0x7FF0, 600, 60),
        ('credit2', '7', 600, 60),
        ('credit2', True, 600, 60),
        ('credit2', 7, 0, 60),
        ('credit2', 7, 65_536, 60),
        ('credit2', 7, 600.0, 60),
        ('credit2', 7, 600, -1),
        ('credit2', 7, 600, 51_201),
        ('credit2', 7, 600, '60 -d 0'),
    )
    @ddt.unpack
    def test_out_of_bounds(self, scheduler, domid, weight, cap):
        self.assertRaises(
            PermissionError, xen.set_credit, scheduler, domid, weight, cap
        )
        self.assertEqual([], self.xl.commands)


@ddt.ddt
class TestProgram(base.BaseTestCase):
    """A program in the place of the toolstack."""

    def setUp(self):
        super().setUp()
        manager = in_process.entrypoints(xen.xen_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        # It cannot be undone for this process.
        self.useFixture(fixtures.MockPatchObject(xen, '_drop_new_privileges'))
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'x')
        self.patch(xen, 'XL', ('/nowhere/xen-%s/xl', str(self.path)))

    def program(self, text):
        self.path.write_text('#!/bin/bash\n' + text)
        os.chmod(self.path, 0o755)

    def test_its_output(self):
        self.program('echo "nr_cpus : $#"; env; pwd >&2')
        os.environ['SECRET'] = 'nr_cpus'
        self.addCleanup(os.environ.pop, 'SECRET')
        self.assertEqual({'nr_cpus': '1'}, xen.info())

    def test_its_failure(self):
        self.program('echo no  such; echo xencall: cannot open >&2; exit 3')
        problem = self.assertRaises(OSError, xen.info)
        self.assertEqual('xl info: xencall: cannot open', str(problem))
        problem = self.assertRaises(OSError, xen.set_rtds, 7, [_VALUES])
        self.assertIn('cannot open', str(problem))

    def test_no_end(self):
        self.patch(xen, 'TIMEOUT_S', 0.1)
        self.program('exec sleep 60')
        problem = self.assertRaises(OSError, xen.info)
        self.assertIn('longer than 0.1 s', str(problem))

    def test_too_much(self):
        self.patch(xen, 'MAX_CHARS', 10)
        self.program('echo 12345678901')
        self.assertIn(
            'too much', str(self.assertRaises(OSError, xen.rtds_parameters))
        )

    # Ends of lines for Python, and what a locale or UTF-8 does not have.
    @ddt.data('\u0085', '\u2028', '\x0b', '\x1c', '\r', 'é', '\udcff')
    def test_names(self, character):
        name = os.fsencode('a%sb' % character)
        rtds, credit2 = (
            self.path.with_name(one) for one in ('sched-rtds', 'sched-credit2')
        )
        rtds.write_bytes(
            b'Cpupool Pool-0: sched=RTDS\n'
            b'Name           ID VCPU    Period    Budget  Extratime\n'
            b'%s              7    0     10000      4000        yes\n' % name
        )
        credit2.write_bytes(
            b'Cpupool Pool-0: ratelimit=1000us\n'
            b'Name           ID Weight  Cap\n'
            b'%s              7    256    0\n' % name
        )
        self.program('cat "%s/$1"\n' % self.path.parent)
        self.assertEqual(
            {'pools': 1, 'vcpus': [(7, 0, 10_000, 4_000, True)]},
            xen.rtds_parameters(),
        )
        self.assertEqual(
            {'pools': 1, 'domains': [(7, 256, 0)]},
            xen.credit_parameters('credit2'),
        )

    def test_none(self):
        problem = self.assertRaises(OSError, xen.info)
        self.assertIn('there is no xl', str(problem))

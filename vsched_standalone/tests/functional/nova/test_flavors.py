# SPDX-License-Identifier: Apache-2.0

"""``vsched-manage flavor`` on a real Nova."""

import contextlib
import io
from unittest import mock

from nova_filters.tests import fakes
from vsched_api.cmd import flavor as flavor_command
from vsched_api.cmd import manage
from vsched_api.cmd import status
from vsched_api.tests import databases
from vsched_lib.contract import placement as names
from vsched_lib.tests import openstack_services
from vsched_standalone.tests.functional.nova import cloud

CLAIM = 'resources_VSCHED:CUSTOM_VSCHED_MCPU'
DEADLINE = 'trait_VSCHED:CUSTOM_VSCHED_BACKEND_DEADLINE'


class TestFlavors(cloud.Cloud):
    def setUp(self):
        super().setUp()
        patch = mock.patch.object(
            flavor_command,
            'client',
            autospec=True,
            side_effect=lambda conf: self.nova,
        )
        patch.start()
        self.addCleanup(patch.stop)

    def manage(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = manage.main(['flavor', *words])
        return status, out.getvalue(), err.getvalue()

    def specs(self, name):
        return dict(self.found(name).extra_specs)

    def test_set_writes_all_of_it(self):
        name = self.flavor(vcpus=2)
        status, out, err = self.manage(
            'set', name, 'cpu_runtime_us=6001', 'vsched:backend=deadline'
        )
        self.assertEqual((0, ''), (status, err))
        self.assertEqual(
            {
                'vsched:cpu_runtime_us': '6001',
                'vsched:backend': 'deadline',
                CLAIM: '601',
                DEADLINE: 'required',
                'group_policy': 'none',
            },
            self.specs(name),
        )
        self.assertIn('%s: %s = 601' % (name, CLAIM), out)
        self.assertEqual(0, self.manage('show', name)[0])

    def test_set_takes_away_what_has_no_value(self):
        name = self.flavor(vcpus=2)
        self.manage(
            'set', name, 'cpu_runtime_us=6000', 'backend=deadline', 'weight=7'
        )
        self.manage('set', name, 'backend=')
        self.assertEqual(
            {
                'vsched:cpu_runtime_us': '6000',
                'vsched:weight': '7',
                CLAIM: '600',
                'group_policy': 'none',
            },
            self.specs(name),
        )
        self.manage('set', name, 'cpu_runtime_us=')
        self.assertEqual({'vsched:weight': '7'}, self.specs(name))

    def test_set_refuses_what_makes_no_sense_and_changes_nothing(self):
        name = self.flavor()
        for words, said in (
            (['cpu_runtime_us=30000'], 'more than the period'),
            (['cpu_runtime_us=many'], 'accepted: a whole number'),
            (['cpu_runtime=6000'], 'accepted is KEY=VALUE'),
            (['cpu_mode=capped'], 'has no meaning without'),
        ):
            status, out, err = self.manage('set', name, *words)
            self.assertEqual((2, ''), (status, out))
            self.assertIn(said, err)
        self.assertEqual({}, self.specs(name))

    def test_what_others_have_stays(self):
        others = {
            'hw:mem_page_size': 'large',
            'group_policy': 'isolate',
            'resources1:CUSTOM_GPU': '1',
            'trait1:HW_NIC_SRIOV': 'required',
        }
        name = self.flavor(**others)
        self.manage('set', name, 'cpu_runtime_us=6000')
        self.assertEqual(
            {**others, 'vsched:cpu_runtime_us': '6000', CLAIM: '300'},
            self.specs(name),
        )
        self.manage('set', name, 'cpu_runtime_us=')
        self.assertEqual(others, self.specs(name))

    def test_show_and_sync(self):
        right, wrong, strange, none = (
            self.flavor(),
            self.flavor(
                **{
                    'vsched:cpu_runtime_us': '10000',
                    CLAIM: '300',
                    DEADLINE: 'required',
                }
            ),
            self.flavor(**{'hw:mem_page_size': 'large'}),
            self.flavor(**{CLAIM: '100', 'group_policy': 'none'}),
        )
        self.manage('set', right, 'cpu_runtime_us=6000')
        status, out, _ = self.manage('show')
        self.assertEqual(1, status)
        self.assertEqual(
            [
                '%s: 6000 us every 20000 us for each of 1 vCPUs, claims 300 '
                'mcpu' % right,
                '%s: 10000 us every 20000 us for each of 1 vCPUs, claims 500 '
                'mcpu' % wrong,
                '  group_policy is missing, must be none',
                '  %s is 300, must be 500' % CLAIM,
                '  %s is required, must go' % DEADLINE,
                '%s: no reservation' % none,
                '  group_policy is none, must go',
                '  %s is 100, must go' % CLAIM,
            ],
            out.splitlines(),
        )

        before = self.specs(wrong)
        self.assertEqual(1, self.manage('sync', '--dry-run')[0])
        self.assertEqual(before, self.specs(wrong))
        self.assertEqual(0, self.manage('sync')[0])
        self.assertEqual(
            {
                'vsched:cpu_runtime_us': '10000',
                CLAIM: '500',
                'group_policy': 'none',
            },
            self.specs(wrong),
        )
        self.assertEqual({}, self.specs(none))
        self.assertEqual({'hw:mem_page_size': 'large'}, self.specs(strange))
        self.assertEqual(0, self.manage('show')[0])
        self.assertEqual(0, self.manage('sync', '--dry-run')[0])

    def test_io_on_top_is_claimed_at_the_highest_price(self):
        name = self.flavor(vcpus=2)
        words = [
            'set',
            name,
            'cpu_runtime_us=6000',
            'io_charging=overprovision',
            'net_rx_pps=1000',
        ]
        hosts = [
            fakes.host('a', prices_ns={'net_rx': 2e4}),
            fakes.host('b', prices_ns={'net_rx': 5.5e4}),
            fakes.host('c'),
        ]
        with mock.patch.object(
            flavor_command.Prices,
            '_read',
            autospec=True,
            return_value={one.name: one.fit() for one in hosts},
        ):
            self.assertEqual(0, self.manage(*words)[0])
            # 55 mcpu, rounded up.
            self.assertEqual('660', self.specs(name)[CLAIM])
            self.assertEqual(0, self.manage('show', name)[0])
            # The guest pays: nothing comes on top.
            self.manage('set', name, 'io_charging=charge')
            self.assertEqual('600', self.specs(name)[CLAIM])
        with mock.patch.object(
            flavor_command.Prices, '_read', autospec=True, return_value={}
        ):
            code, _, err = self.manage(*words)
            self.assertEqual(0, code)
            self.assertIn('no host has measured what I/O costs', err)
            self.assertEqual('600', self.specs(name)[CLAIM])

    def test_a_bound_that_no_trait_shows(self):
        name = self.flavor()
        self.manage(
            'set', name, 'cpu_runtime_us=6000', 'max_alloc_error_pct=3'
        )
        trait = 'trait_VSCHED:' + names.certified_trait(
            'deadline', 20_000, 20_000
        )
        self.assertEqual('required', self.specs(name)[trait])
        self.manage('set', name, 'max_alloc_error_pct=0.3')
        self.assertNotIn(trait, self.specs(name))
        code, out, _ = self.manage('show', name)
        self.assertEqual(0, code)
        self.assertIn('note: max_alloc_error_pct 0.3 is below 0.5', out)

    def test_a_user_without_the_rights(self):
        """The role that is enough for placement is not for flavors."""
        name = self.flavor(**{'vsched:cpu_runtime_us': '6000'})
        before = self.specs(name)
        admin = self.roles
        self.roles = 'service'
        for words in (
            ['show'],
            ['show', name],
            ['sync'],
            ['set', name, 'weight=7'],
        ):
            code, out, err = self.manage(*words)
            self.assertEqual((2, ''), (code, out))
            self.assertIn('role admin', err)
            self.assertIn('os_compute_api:os-flavor-extra-specs:index', err)
        # Who may look but not write.
        self.roles = 'reader,member'
        self.assertEqual(1, self.manage('show', name)[0])
        code, _, err = self.manage('sync', name)
        self.assertEqual(2, code)
        self.assertIn('os_compute_api:os-flavor-extra-specs:create', err)
        self.roles = admin
        self.assertEqual(before, self.specs(name))

    def test_upgrade_check_without_the_rights(self):
        self.flavor(**{'vsched:cpu_runtime_us': '6000'})
        file = openstack_services.write_options(
            self,
            {
                'database': {'connection': databases.SQLite.make(self)},
                'nova': {'auth_type': 'none'},
            },
        )
        words = [
            '--config-file',
            file,
            '--nova-conf',
            '/nowhere',
            'upgrade',
            'check',
        ]
        for roles, said in (
            (self.roles, '1 flavors do not claim'),
            ('service', 'os-flavor-extra-specs:index'),
        ):
            self.roles = roles
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                self.assertEqual(1, status.main(words))
            self.assertIn(
                said, ' '.join(out.getvalue().replace('|', ' ').split())
            )

    def test_a_flavor_nobody_knows(self):
        status, out, err = self.manage('show', 'unknown')
        self.assertEqual((2, ''), (status, out))
        self.assertIn('there is no flavor unknown', err)

# SPDX-License-Identifier: Apache-2.0

"""``vsched-status upgrade check``."""

import contextlib
import io
import json
from unittest import mock

import fixtures
from oslotest import base

from vsched_api.cmd import flavor
from vsched_api.cmd import status
from vsched_api.db import session as db
from vsched_api.operations import reports
from vsched_api.tests import database_options
from vsched_api.tests import databases
from vsched_lib.contract import messages
from vsched_lib.openstack import compute
from vsched_lib.openstack import session


class TestStatus(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir())
        self.use(databases.SQLite.make(self))
        self.files = {
            'nova': self.folder.join('nova.conf'),
            'placement': self.folder.join('placement.conf'),
        }

    def use(self, url, more=''):
        self.url = url
        self.file = self.folder.join('vsched.conf')
        with open(self.file, 'w') as file:
            file.write('[database]\nconnection = %s\n%s' % (url, more))

    def write(self, service, text):
        with open(self.files[service], 'w') as file:
            file.write(text)

    def run_command(self, *words):
        return self.run_line(*self.options(), 'upgrade', 'check', *words)

    def options(self):
        return [
            '--config-file',
            self.file,
            '--nova-conf',
            self.files['nova'],
            '--placement-conf',
            self.files['placement'],
        ]

    def run_line(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = status.main(list(words))
        return code, out.getvalue(), err.getvalue()

    def check(self, name):
        code, out, _ = self.run_command('--json')
        found = {one['check']: one for one in json.loads(out)['checks']}
        return found[name]['result'], found[name]['details'] or '', code

    def test_all_is_well(self):
        code, out, _ = self.run_command()
        self.assertEqual(0, code)
        self.assertIn('Check: Database', out)

    def test_options_may_follow_the_command(self):
        options = self.options()
        before = self.run_line(*options, 'upgrade', 'check', '--json')
        for words in (
            ('upgrade', 'check', '--json', *options),
            ('upgrade', 'check', *options, '--json'),
            (*options[:2], 'upgrade', 'check', *options[2:], '--json'),
        ):
            self.assertEqual(before, self.run_line(*words))

    def test_the_help_of_the_command(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            ended = self.assertRaises(
                SystemExit, status.main, ['upgrade', 'check', '--help']
            )
        self.assertEqual(0, ended.code)
        self.assertIn('--json', out.getvalue())

    def test_another_word_is_refused(self):
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            ended = self.assertRaises(
                SystemExit, self.run_line, *self.options(), 'upgrade', 'chek'
            )
        self.assertEqual(2, ended.code)

    def test_tables_of_another_release(self):
        self.use(databases.SQLite.make(self, migrated=False))
        result, details, code = self.check('Database')
        self.assertEqual((2, 2), (result, code))
        self.assertIn('vsched-manage db sync', details)
        self.assertEqual(1, self.check('Agents')[0])

    def test_a_database_that_is_away(self):
        self.use('postgresql+psycopg2://me:1234@127.0.0.1:1/x')
        code, _, err = self.run_command()
        self.assertEqual(255, code)
        self.assertIn('does not answer', err)
        self.assertNotIn('1234', err)

    def test_agents_that_do_not_report(self):
        database = db.Database(database_options.configuration(self.url))
        self.addCleanup(database.dispose)
        for number in range(7):
            reports.Storage(database, now=lambda: 1.0).store(
                messages.Report('node%d' % number, 1, 1.0)
            )
        result, details, _ = self.check('Agents')
        self.assertEqual(1, result)
        self.assertIn('7 hosts', details)
        self.assertIn('node4 and 2 more', details)

    def test_claims_at_the_same_moment(self):
        self.write('placement', '[placement]\n')
        result, details, code = self.check('Claims at the same moment')
        self.assertEqual((1, 1), (result, code))
        self.assertIn('set it to 1', details)
        self.write(
            'placement', '[placement]\nallocation_conflict_retry_count = 1\n'
        )
        self.assertEqual(0, self.check('Claims at the same moment')[0])

    def test_filters(self):
        self.write(
            'nova', '[filter_scheduler]\nenabled_filters = ComputeFilter\n'
        )
        result, details, _ = self.check('Filters')
        self.assertEqual(1, result)
        self.assertIn('enabled_filters lacks VschedReservationFilter', details)
        self.assertIn('available_filters names none', details)
        self.write(
            'nova',
            """[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nova_filters.filters.all_filters
enabled_filters = ComputeFilter,VschedReservationFilter
""",
        )
        self.assertEqual(0, self.check('Filters')[0])

    def test_nova_without_its_own_weighers(self):
        lines = (
            'weight_classes = nova.scheduler.weights.all_weighers\n',
            'weight_classes = nova_filters.weighers.all_weighers\n',
        )
        self.write('nova', '[filter_scheduler]\n' + ''.join(lines))
        result, details, _ = self.check('Filters')
        self.assertEqual(1, result)
        self.assertIn("none of Nova's own weighers", details)
        self.write('nova', '[filter_scheduler]\n%s' % lines[0])
        self.assertNotIn('weight_classes', self.check('Filters')[1])

    def test_what_filters_ask(self):
        check = 'What filters ask'
        self.assertIn('not checked', self.check(check)[1])
        self.write(
            'nova',
            '[filter_scheduler]\nenabled_filters = '
            'VschedReservationFilter\n[vsched]\n'
            'auth_type = none\n'
            'endpoint_override = http://127.0.0.1:1\n',
        )
        result, details, code = self.check(check)
        self.assertEqual((1, 1), (result, code))
        self.assertIn('no filter learns anything of hosts', details)

    def test_flavors(self):
        self.assertIn('not checked', self.check('Flavors')[1])
        self.use(self.url, '[nova]\nauth_type = none\n')
        nova = mock.Mock(spec_set=compute.Compute)
        with mock.patch.object(
            flavor, 'client', autospec=True, return_value=nova
        ):
            nova.flavors.return_value = [
                compute.Flavor('1', 'plain', 1, {'hw:x': '1'}),
                compute.Flavor(
                    '2', 'wrong', 1, {'vsched:cpu_runtime_us': '6000'}
                ),
            ]
            result, details, _ = self.check('Flavors')
            self.assertEqual(1, result)
            self.assertIn('1 flavors', details)
            self.assertIn('wrong', details)
            nova.flavors.return_value = []
            self.assertEqual(0, self.check('Flavors')[0])
            nova.flavors.side_effect = session.Unavailable('nova is away')
            result, details, _ = self.check('Flavors')
            self.assertEqual(
                (1, 'not checked: nova is away'), (result, details)
            )

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
from vsched_api.tests import base as tests
from vsched_api.tests import databases
from vsched_lib.contract import messages
from vsched_lib.openstack import compute
from vsched_lib.openstack import session


class TestStatus(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir())
        self.use(databases.SQLite.make(self))
        self.files = {'nova': self.folder.join('nova.conf'),
                      'placement': self.folder.join('placement.conf')}

    def use(self, url, more=''):
        self.url = url
        self.file = self.folder.join('vsched.conf')
        with open(self.file, 'w') as file:
            file.write('[database]\nconnection = %s\n%s' % (url, more))

    def write(self, service, text):
        with open(self.files[service], 'w') as file:
            file.write(text)

    def run_command(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = status.main([
                '--config-file', self.file,
                '--nova-conf', self.files['nova'],
                '--placement-conf', self.files['placement'],
                'upgrade', 'check', *words])
        return code, out.getvalue(), err.getvalue()

    def check(self, name):
        code, out, _ = self.run_command('--json')
        found = {one['check']: one for one in json.loads(out)['checks']}
        return found[name]['result'], found[name]['details'] or '', code

    def test_all_is_well(self):
        code, out, _ = self.run_command()
        self.assertEqual(0, code)
        self.assertIn('Check: Database', out)

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
        database = db.Database(databases.configuration(self.url))
        self.addCleanup(database.dispose)
        for number in range(7):
            reports.store(database, messages.Report(
                'node%d' % number, 1, 1.0), 1.0)
        result, details, _ = self.check('Agents')
        self.assertEqual(1, result)
        self.assertIn('7 hosts', details)
        self.assertIn('node4 and 2 more', details)

    def test_agents_that_do_not_tell_what_they_go_by(self):
        database = db.Database(databases.configuration(self.url))
        self.addCleanup(database.dispose)
        reports.store(database, messages.Report(
            'node1', 1, 1.0, tests.host_info()), 1.0)
        self.assertEqual(0, self.check('What agents go by')[0])
        reports.store(database, messages.Report(
            'node2', 1, 1.0, tests.host_info(policy=None)), 1.0)
        result, details, _ = self.check('What agents go by')
        self.assertEqual(1, result)
        self.assertIn("1 agents don't tell what they go by: node2;", details)

    def test_claims_at_the_same_moment(self):
        self.write('placement', '[placement]\n')
        result, details, code = self.check('Claims at the same moment')
        self.assertEqual((1, 1), (result, code))
        self.assertIn('set it to 1', details)
        self.write('placement',
                   '[placement]\nallocation_conflict_retry_count = 1\n')
        self.assertEqual(0, self.check('Claims at the same moment')[0])

    def test_filters(self):
        self.write('nova', '[filter_scheduler]\n'
                           'enabled_filters = ComputeFilter\n')
        result, details, _ = self.check('Filters')
        self.assertEqual(1, result)
        self.assertIn('enabled_filters lacks VschedReservationFilter',
                      details)
        self.assertIn('available_filters names none', details)
        self.write('nova', '''[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nova_filters.filters.all_filters
enabled_filters = ComputeFilter,VschedReservationFilter
''')
        self.assertEqual(0, self.check('Filters')[0])

    def test_flavors(self):
        self.assertIn('not looked at', self.check('Flavors')[1])
        self.use(self.url, '[nova]\nauth_type = none\n')
        nova = mock.Mock(spec_set=compute.Compute)
        with mock.patch.object(flavor, 'client', autospec=True,
                               return_value=nova):
            nova.flavors.return_value = [
                compute.Flavor('1', 'plain', 1, {'hw:x': '1'}),
                compute.Flavor('2', 'wrong', 1, {
                    'vsched:cpu_runtime_us': '6000'})]
            result, details, _ = self.check('Flavors')
            self.assertEqual(1, result)
            self.assertIn('1 flavors', details)
            self.assertIn('wrong', details)
            nova.flavors.return_value = []
            self.assertEqual(0, self.check('Flavors')[0])
            nova.flavors.side_effect = session.Unavailable('nova is away')
            result, details, _ = self.check('Flavors')
            self.assertEqual((1, 'not looked at: nova is away'),
                             (result, details))

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

"""The application as a WSGI server imports it."""

import importlib
import os
from unittest import mock

from vsched_api.tests import base
from vsched_api.tests import databases


class TestApi(base.TestCase):
    """Its options come from files that the environment names."""

    def test_import(self):
        files = [databases.write(self, text) for text in (
            '[DEFAULT]\ntransport_url = fake://\n',
            '[api]\nauth_strategy = noauth\n'
            '[database]\nconnection = %s\n' % (
                self.conf.database.connection))]
        with mock.patch.dict(
                os.environ, OS_VSCHED_CONFIG_FILES=':'.join(files)):
            module = importlib.import_module('vsched_api.wsgi.api')
        self.addCleanup(
            module.application.extensions['vsched'].database.dispose)
        self.assertEqual(200, module.application.test_client().get(
            '/healthcheck').status_code)

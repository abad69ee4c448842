# SPDX-License-Identifier: Apache-2.0

"""The application as a WSGI server imports it."""

import importlib
import os
from unittest import mock

from vsched_api.tests import base
from vsched_api.tests import databases


class TestApi(base.TestCase):
    """Its options come from files that the environment names."""

    def test_import(self):
        files = [
            databases.write(self, text)
            for text in (
                '[DEFAULT]\ntransport_url = fake://\n',
                '[api]\nauth_strategy = noauth\n'
                '[database]\nconnection = %s\n'
                % (self.conf.database.connection),
            )
        ]
        with mock.patch.dict(
            os.environ, OS_VSCHED_CONFIG_FILES=':'.join(files)
        ):
            module = importlib.import_module('vsched_api.wsgi.api')
        self.addCleanup(
            module.application.extensions['vsched'].database.dispose
        )
        self.assertEqual(
            200, module.application.test_client().get('/readiness').status_code
        )

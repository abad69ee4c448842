# SPDX-License-Identifier: Apache-2.0

"""Liveness apart from readiness, and together where the operator says so."""

import configparser
import importlib
import pathlib
from unittest import mock

import stevedore

from vsched_api.tests import base
from vsched_api.tests import databases

SETUP = pathlib.Path(__file__).parents[4] / 'setup.cfg'


def _installed(namespace, names, invoke_args=(), **_):
    """Find plugins in setup.cfg, whatever was installed."""
    parser = configparser.ConfigParser()
    parser.read(SETUP)
    entries = dict(
        line.split(' = ')
        for line in parser['options.entry_points'][namespace]
        .strip()
        .splitlines()
    )
    found = []
    for name in names:
        module, _, attribute = entries[name].partition(':')
        plugin = getattr(importlib.import_module(module), attribute)
        found.append(
            stevedore.extension.Extension(
                name, None, plugin, plugin(*invoke_args)
            )
        )
    return found


class TestHealthcheck(base.TestCase):
    def get(self, connection=None, backends=(), **headers):
        if connection is not None:
            self.conf.set_override('connection', connection, 'database')
        with mock.patch.object(
            stevedore,
            'NamedExtensionManager',
            autospec=True,
            side_effect=_installed,
        ):
            # The options are registered by the first application.
            self.client()
            self.conf.set_override('backends', list(backends), 'healthcheck')
            return self.client().get('/healthcheck', headers=headers)

    def test_liveness_asks_no_database(self):
        self.assertEqual(
            200, self.get('sqlite:////nowhere/at/all').status_code
        )

    def test_a_database_that_answers(self):
        answer = self.get(backends=['vsched_database'])
        self.assertEqual((200, 'OK'), (answer.status_code, answer.text))
        answer = self.get(
            backends=['vsched_database'], Accept='application/json'
        )
        self.assertEqual(['OK'], answer.json['reasons'])

    def test_a_database_that_is_away(self):
        answer = self.get(
            'postgresql+psycopg2://u:1234@127.0.0.1:1/v', ['vsched_database']
        )
        self.assertEqual(503, answer.status_code)
        self.assertIn('does not answer', answer.text)
        for secret in ('1234', '127.0.0.1'):
            self.assertNotIn(secret, answer.text)

    def test_a_database_without_tables(self):
        answer = self.get(
            databases.SQLite.make(self, migrated=False), ['vsched_database']
        )
        self.assertEqual(503, answer.status_code)
        self.assertIn('vsched-manage db sync', answer.text)

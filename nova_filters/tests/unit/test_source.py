# SPDX-License-Identifier: Apache-2.0

"""Asking the service, over real HTTP."""

import json

from oslo_config import cfg
from oslotest import base

from nova_filters import conf as options
from nova_filters import source
from nova_filters.tests import fakes
from vsched_lib.tests import http_answers


class TestSource(base.BaseTestCase):
    """Against a server with set answers."""

    def setUp(self):
        super().setUp()

        def answer(path, headers):
            self.asked = path, headers
            return self.answer

        self.url = http_answers.serve(self, answer)
        self.conf = cfg.ConfigOpts()
        options.register_opts(self.conf)
        self.conf([], default_config_files=[])
        for name, value in (
            ('auth_type', 'none'),
            ('timeout', 60),
            ('endpoint_override', self.url),
        ):
            self.conf.set_override(name, value, 'vsched')
        self.source = source.Source(self.conf)

    def respond(self, status, body=b'', **headers):
        self.answer = status, body, headers

    def test_all_hosts(self):
        expected = fakes.answer(
            fakes.host(
                version=7,
                certificates=(
                    fakes.certificate(-5_000),
                    fakes.certificate(None, 10_000),
                ),
            )
        )
        self.respond(200, json.dumps(expected.to_dict()).encode(), ETag='"t"')
        self.assertEqual((expected, '"t"'), self.source.get())
        self.assertEqual('/v1/snapshot', self.asked[0])
        self.assertNotIn('If-None-Match', self.asked[1])
        self.assertIn('gzip', self.asked[1]['Accept-Encoding'])

    def test_nothing_new(self):
        self.respond(304)
        self.assertEqual((None, '"t"'), self.source.get(7, '"t"'))
        self.assertEqual('/v1/snapshot?since=7', self.asked[0])
        self.assertEqual('"t"', self.asked[1]['If-None-Match'])

    def test_what_is_no_answer(self):
        for status, body, words in (
            (503, b'{"errors": []}', 'it answers 503'),
            (200, b'<html>', 'cannot be parsed'),
            (200, b'{"version": 1}', 'missing'),
            (200, b'[]', 'not an object'),
        ):
            self.respond(status, body)
            problem = self.assertRaises(source.Unavailable, self.source.get)
            self.assertIn(words, str(problem))

    def test_no_server(self):
        self.conf.set_override(
            'endpoint_override', 'http://127.0.0.1:1', 'vsched'
        )
        self.assertRaises(source.Unavailable, self.source.get)

    def test_invalid_options(self):
        self.conf.set_override('auth_type', 'no-such-type', 'vsched')
        self.assertRaises(source.Unavailable, self.source.get)
        # A later change counts.
        self.conf.set_override('auth_type', 'none', 'vsched')
        self.respond(304)
        self.assertEqual((None, None), self.source.get())

# SPDX-License-Identifier: Apache-2.0

"""The page's files, and what goes with them."""

import gzip
import re

import fixtures

from vsched_api.operations import page
from vsched_api.policies import reservations as policies
from vsched_api.tests import base
from vsched_lib.contract import errors


class TestPage(base.TestCase):
    """As a browser requests it."""

    def setUp(self):
        super().setUp()
        self.http = self.client()

    def test_the_index_is_the_answer_for_each_view(self):
        answers = [
            self.http.get(path)
            for path in ('/ui', '/ui/', '/ui/hosts', '/ui/hosts/node1?tab=x')
        ]
        for answer in answers:
            self.assertEqual(200, answer.status_code)
            self.assertEqual('text/html; charset=utf-8', answer.content_type)
            self.assertEqual(answers[0].data, answer.data)
            self.assertEqual('no-cache', answer.headers['Cache-Control'])
        self.assertIn(b'<base href="/ui/">', answers[0].data)

    def test_browsers_are_to_enforce_its_policy(self):
        for path in ('/ui', '/ui/assets/' + min(page.read().assets)):
            headers = self.http.get(path).headers
            policy = headers['Content-Security-Policy']
            self.assertIn("default-src 'self'", policy)
            self.assertIn("frame-ancestors 'none'", policy)
            self.assertNotIn('unsafe', policy)
            self.assertNotIn(':', policy)
            self.assertEqual('nosniff', headers['X-Content-Type-Options'])
            self.assertEqual('no-referrer', headers['Referrer-Policy'])

    def test_unchanged_files_are_not_sent_again(self):
        for path in ('/ui', '/ui/assets/' + min(page.read().assets)):
            tag = self.http.get(path).headers['ETag']
            again = self.http.get(path, headers={'If-None-Match': tag})
            self.assertEqual(304, again.status_code)
            self.assertEqual(b'', again.data)
            self.assertIn('Content-Security-Policy', again.headers)

    def test_each_asset_of_the_index(self):
        index = self.http.get('/ui').text
        names = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', index)
        self.assertLessEqual(2, len(names))
        for name in names:
            answer = self.http.get('/ui/' + name)
            self.assertEqual(200, answer.status_code, name)
            self.assertIn('immutable', answer.headers['Cache-Control'])
            self.assertNotIn('Content-Encoding', answer.headers)
            zipped = self.http.get(
                '/ui/' + name, headers={'Accept-Encoding': 'gzip'}
            )
            if zipped.headers.get('Content-Encoding') == 'gzip':
                self.assertEqual(answer.data, gzip.decompress(zipped.data))
            if name.endswith('.js'):
                self.assertEqual(
                    'text/javascript; charset=utf-8', answer.content_type
                )
                self.assertLess(len(zipped.data), len(answer.data))

    def test_nothing_else_is_served(self):
        for path in (
            '/ui/assets/index.html',
            '/ui/assets/../index.html',
            '/ui/assets/..%2findex.html',
            '/ui/assets/%2e%2e%2f%2e%2e%2f__init__.py',
            '/ui/assets/sources.sha256',
            '/ui/assets/a/b',
            '/ui/a/b/c',
            '/ui/assets/x',
        ):
            answer = self.http.get(path)
            if path == '/ui/assets/../index.html' and (
                answer.status_code == 200
            ):
                # Clients resolve this before they send it: a view.
                self.assertIn(b'<base href="/ui/">', answer.data)
                continue
            self.assertEqual(404, answer.status_code, path)
            self.assertEqual(
                errors.Code.NOT_FOUND, answer.json['errors'][0]['code']
            )

    def test_without_built_files(self):
        self.useFixture(
            fixtures.MockPatchObject(page, 'PACKAGE', 'vsched_no_such_page')
        )
        for path in ('/ui', '/ui/hosts', '/ui/assets/x.js'):
            answer = self.http.get(path)
            self.assertEqual(404, answer.status_code)
            self.assertIn('npm run build', answer.json['errors'][0]['detail'])
        self.assertIsNone(page.folder())
        # What the page would ask first is there all the same.
        self.assertEqual(200, self.http.get('/ui/session').status_code)

    def test_below_a_path_of_the_server(self):
        answer = self.http.get(
            '/ui/hosts', environ_overrides={'SCRIPT_NAME': '/a"b/vsched'}
        )
        self.assertIn(b'<base href="/a&quot;b/vsched/ui/">', answer.data)

    def test_who_is_the_user(self):
        answer = self.http.get('/ui/session')
        session = answer.json['session']
        self.assertEqual('noauth', session['auth_strategy'])
        self.assertIsNone(session['problem'])
        self.assertIn('admin', session['roles'])
        self.assertIn(policies.UPDATE, session['allowed'])
        self.assertEqual([], session['allowed_in_project'])
        self.assertEqual('no-store', answer.headers['Cache-Control'])

    def test_it_takes_no_query(self):
        for path in (
            '/ui/session?x=1',
            '/ui/assets/%s?x=1' % min(page.read().assets),
        ):
            self.assertEqual(400, self.http.get(path).status_code)

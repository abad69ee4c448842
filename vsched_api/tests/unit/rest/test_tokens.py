# SPDX-License-Identifier: Apache-2.0

"""Telling a keystone that is away from one that refuses."""

from keystonemiddleware import auth_token
from oslotest import base

from vsched_api.rest import tokens


class Identity:
    """Keystone, as keystonemiddleware sees it."""

    def __init__(self):
        self.asked = 0
        self.outcome = {'token': {}}

    @property
    def www_authenticate_uri(self):
        return self._give()

    def verify_token(self, token, **more):
        self.asked += 1
        return self._give()

    def _give(self):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class TestIdentity(base.BaseTestCase):
    """Keystone is asked seldom while it is away."""

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.keystone = Identity()
        self.identity = tokens._Identity(
            self.keystone, 5.0, clock=lambda: self.now
        )

    def test_one_that_answers_is_asked_each_time(self):
        for _ in range(3):
            self.assertEqual({'token': {}}, self.identity.verify_token('x'))
        self.assertEqual(3, self.keystone.asked)

    def test_one_that_refuses_is_not_away(self):
        self.keystone.outcome = auth_token.InvalidToken('no')
        for _ in range(3):
            self.assertRaises(
                auth_token.InvalidToken, self.identity.verify_token, 'x'
            )
        self.assertEqual(3, self.keystone.asked)

    def test_one_that_is_away_is_left_alone_for_a_while(self):
        self.keystone.outcome = ConnectionError('refused')
        for _ in range(3):
            self.assertRaises(tokens._Away, self.identity.verify_token, 'x')
        self.assertEqual(1, self.keystone.asked)
        self.now = 5.0
        for _ in range(3):
            self.assertRaises(tokens._Away, self.identity.verify_token, 'x')
        self.assertEqual(2, self.keystone.asked)
        self.now = 10.0
        self.keystone.outcome = {'token': {}}
        self.identity.verify_token('x')
        self.identity.verify_token('x')
        self.assertEqual(4, self.keystone.asked)

    def test_where_clients_get_tokens_may_be_unknown(self):
        self.keystone.outcome = ConnectionError('refused')
        self.assertEqual('', self.identity.www_authenticate_uri)

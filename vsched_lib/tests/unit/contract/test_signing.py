# SPDX-License-Identifier: Apache-2.0

"""Signatures, and the files of keys."""

import dataclasses
import json
import os

import fixtures
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies
from oslotest import base

from vsched_lib.contract import errors
from vsched_lib.contract import signing
from vsched_lib.contract import signing_keys
from vsched_lib.tests import bus_keys

ARGUMENTS = {'report': {'host': 'node1', 'at': 1.25, 'batch': 1}}
REPLY = {'duplicate': False, 'last_batch': 3}


def value():
    return strategies.recursive(
        strategies.none()
        | strategies.booleans()
        | strategies.integers()
        | strategies.floats(allow_nan=False, allow_infinity=False)
        | strategies.text(),
        lambda inner: (
            strategies.lists(inner, max_size=3)
            | strategies.dictionaries(strategies.text(), inner, max_size=3)
        ),
        max_leaves=10,
    )


class TestSigning(base.BaseTestCase):
    def admit(self, method, arguments, raw):
        """What a collector checks of a signature alone."""
        request = signing.Envelope.from_dict(raw)
        return signing.matches(
            request.mac,
            signing.mac(
                bus_keys.key(request.host, request.serial),
                signing.Direction.REQUEST,
                method,
                request.at_us,
                request.nonce,
                request.epoch,
                request.sequence,
                arguments,
            ),
        )

    def test_every_part_is_signed(self):
        signed = bus_keys.signer('node1').sign('report', ARGUMENTS)
        raw = signed[1].to_dict()
        self.assertTrue(self.admit('report', ARGUMENTS, raw))
        self.assertFalse(self.admit('overrides', ARGUMENTS, raw))
        self.assertFalse(self.admit('report', {'report': {}}, raw))
        for name, other in (
            ('host', 'node2'),
            ('serial', 2),
            ('at_us', 5),
            ('nonce', 'a' * 32),
            ('epoch', 'b' * 32),
            ('sequence', 7),
            ('mac', 'c' * 64),
        ):
            self.assertFalse(
                self.admit('report', ARGUMENTS, {**raw, name: other}), name
            )

    @settings(deadline=None)
    @given(value())
    def test_what_json_carries_keeps_its_signature(self, payload):
        arguments = {'report': payload}
        raw = bus_keys.signer('node1').sign('report', arguments)[1].to_dict()
        self.assertTrue(
            self.admit(
                'report',
                json.loads(json.dumps(arguments)),
                json.loads(json.dumps(raw)),
            )
        )

    def test_what_is_no_json_is_not_signed(self):
        deep = []
        for _ in range(5_000):
            deep = [deep]
        for payload in (float('nan'), object(), deep):
            self.assertRaises(
                errors.Unauthenticated,
                bus_keys.signer('node1').sign,
                'report',
                {'report': payload},
            )

    def test_keys_differ_by_master_host_and_serial(self):
        found = {
            bus_keys.key(host, serial, master).secret
            for host in ('a', 'a|1', 'b')
            for serial in (1, 11, 2)
            for master in ('5a' * 32, '5b' * 32)
        }
        self.assertEqual(18, len(found))
        self.assertNotIn(
            bus_keys.key('a').secret.hex(), repr(bus_keys.key('a'))
        )

    def test_malformed_signatures_are_named(self):
        good = bus_keys.signer('node1').sign('report', ARGUMENTS)[1].to_dict()
        for name, other in (
            ('version', 2),
            ('version', True),
            ('serial', -1),
            ('serial', 2**31),
            ('at_us', 1.5),
            ('at_us', None),
            ('sequence', 2**60),
            ('nonce', 'A' * 32),
            ('nonce', 'a'),
            ('epoch', None),
            ('mac', 'g' * 64),
            ('host', ''),
            ('host', 'h' * 256),
            ('host', 7),
        ):
            error = self.assertRaises(
                errors.Unauthenticated,
                signing.Envelope.from_dict,
                {**good, name: other},
            )
            self.assertIn(name, str(error))
        for raw in (None, [], 'x', {}):
            self.assertRaises(
                errors.Unauthenticated, signing.Envelope.from_dict, raw
            )

    def test_a_reply_answers_one_request(self):
        signer = bus_keys.signer('node1')
        first = signer.sign('report', ARGUMENTS)
        second = signer.sign('report', ARGUMENTS)
        reply = signing.sign_reply(*first, 'report', REPLY)
        self.assertEqual(REPLY, signer.check('report', first, reply))
        for signed, method, told in (
            (second, 'report', reply),
            (first, 'jobs', reply),
            (first, 'report', {**reply, 'duplicate': True}),
            (first, 'report', {**reply, 'more': 1}),
            (
                first,
                'report',
                {
                    **reply,
                    signing.FIELD: {**reply[signing.FIELD], 'mac': 'a' * 64},
                },
            ),
            (
                first,
                'report',
                {**reply, signing.FIELD: {**reply[signing.FIELD], 'at_us': 1}},
            ),
            (first, 'report', {**reply, signing.FIELD: 'x'}),
            (
                first,
                'report',
                {**reply, signing.FIELD: {'mac': '\u2603', 'at_us': 1}},
            ),
            (first, 'report', REPLY),
        ):
            self.assertRaises(
                errors.Unauthenticated, signer.check, method, signed, told
            )

    def test_permissive_takes_no_wrong_signature(self):
        signer = bus_keys.signer('node1', mode=signing.Mode.PERMISSIVE)
        signed = signer.sign('report', ARGUMENTS)
        self.assertEqual(REPLY, signer.check('report', signed, REPLY))
        reply = signing.sign_reply(*signed, 'report', REPLY)
        self.assertRaises(
            errors.Unauthenticated,
            signer.check,
            'report',
            signed,
            {**reply, 'duplicate': True},
        )

    def test_without_a_key(self):
        for mode, word in (('required', 'key_file'), ('permissive', None)):
            signer = signing.Signer(
                signing.Mode(mode), 'node1', lambda: None, lambda: 'e' * 32
            )
            if word is None:
                self.assertIsNone(signer.sign('report', ARGUMENTS))
            else:
                self.assertIn(
                    word,
                    str(
                        self.assertRaises(
                            errors.Unauthenticated,
                            signer.sign,
                            'report',
                            ARGUMENTS,
                        )
                    ),
                )

    def test_the_key_of_another_host(self):
        signer = signing.Signer(
            signing.Mode.REQUIRED,
            'node2',
            lambda: bus_keys.key('node1'),
            lambda: 'e' * 32,
        )
        self.assertIn(
            'node1',
            str(
                self.assertRaises(
                    errors.Unauthenticated, signer.sign, 'report', ARGUMENTS
                )
            ),
        )

    def test_requests_are_numbered_upwards(self):
        signer = bus_keys.signer('node1')
        self.assertEqual(
            [1, 2, 3], [signer.sign('jobs', {})[1].sequence for _ in range(3)]
        )


class TestKeyFile(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path

    def file(self, text, mode=0o600, parse=signing_keys.parse_host_key):
        return signing.KeyFile(
            bus_keys.write(self.folder, 'key', text, mode), parse
        )

    def test_what_is_rendered_is_read(self):
        key = bus_keys.key('node1', 3)
        self.assertEqual(key, self.file(key.render()).read())

    def test_others_must_not_have_access(self):
        for mode in (0o640, 0o604, 0o620, 0o644, 0o601):
            error = self.assertRaises(
                signing.KeyFileError,
                self.file(bus_keys.key('node1').render(), mode).read,
            )
            self.assertIn('%04o' % mode, str(error))
            self.assertNotIn(bus_keys.key('node1').secret.hex(), str(error))

    def test_a_change_is_seen(self):
        file = self.file(bus_keys.key('node1').render())
        self.assertEqual(1, file.read().serial)
        path = bus_keys.write(
            self.folder, 'new', bus_keys.key('node1', 2).render()
        )
        os.replace(path, os.path.join(self.folder, 'key'))
        self.assertEqual(2, file.read().serial)
        os.unlink(os.path.join(self.folder, 'key'))
        self.assertRaises(signing.KeyFileError, file.read)

    def test_a_change_is_seen_after_the_interval(self):
        path = bus_keys.write(
            self.folder, 'key', bus_keys.key('node1').render()
        )
        now_s = [100.0]
        file = signing.KeyFile(
            path, signing_keys.parse_host_key, 1.0, lambda: now_s[0]
        )
        self.assertEqual(1, file.read().serial)
        os.unlink(path)
        now_s[0] = 100.9
        self.assertEqual(1, file.read().serial)
        now_s[0] = 101.0
        self.assertRaises(signing.KeyFileError, file.read)
        # What cannot be used is looked at again at once.
        bus_keys.write(self.folder, 'key', bus_keys.key('node1', 2).render())
        self.assertEqual(2, file.read().serial)

    def test_something_else(self):
        good = json.loads(bus_keys.key('node1').render())
        for text in (
            '',
            '{}',
            '[]',
            'x',
            '\u2603',
            json.dumps({**good, 'key': 'zz'}),
            json.dumps({**good, 'key': 'aa'}),
            json.dumps({**good, 'serial': 0}),
            json.dumps({**good, 'host': 1}),
        ):
            self.assertRaises(ValueError, signing_keys.parse_host_key, text)

    def test_master_keys(self):
        one, two = signing_keys.new_master(), signing_keys.new_master()
        self.assertEqual(
            [bytes.fromhex(one), bytes.fromhex(two)],
            signing_keys.parse_masters('# comment\n%s\n\n %s\n' % (one, two)),
        )
        for text in (
            '',
            '# none',
            one[:-1],
            one.upper() + 'x',
            '\n'.join([one] * 9),
        ):
            self.assertRaises(ValueError, signing_keys.parse_masters, text)

    def test_a_key_is_a_value(self):
        self.assertRaises(
            dataclasses.FrozenInstanceError,
            setattr,
            bus_keys.key('node1'),
            'host',
            'node2',
        )

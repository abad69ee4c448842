# SPDX-License-Identifier: Apache-2.0

"""Which requests a collector takes, and for whose."""

from unittest import mock

import fixtures

from vsched_api.collector import authenticator
from vsched_api.collector import key_cache
from vsched_api.db import models
from vsched_api.operations import host_keys
from vsched_api.tests import base
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import signing
from vsched_lib.contract import signing_keys
from vsched_lib.tests import bus_keys

ARGUMENTS = {'host': base.HOST}


class TestAuthenticator(base.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = 1_000.0
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.masters = bus_keys.write(
            self.folder, 'master.key', bus_keys.MASTER
        )
        self.checked = self.make()

    def make(self, mode=signing.Mode.REQUIRED):
        return authenticator.Authenticator(
            mode,
            self.database,
            signing.KeyFile(self.masters, signing_keys.parse_masters),
            3_600,
            lambda: self.now,
            lambda: self.clock,
        )

    def admit(
        self,
        signer,
        method='report',
        reads=False,
        checked=None,
        arguments=ARGUMENTS,
    ):
        signed = signer.sign(method, arguments)[1].to_dict()
        return (checked or self.checked).admit(
            method, arguments, signed, reads
        )

    def refused(self, word, *args, **kwargs):
        error = self.assertRaises(
            errors.Unauthenticated, self.admit, *args, **kwargs
        )
        self.assertIn(word, str(error))

    def issue(self, host=base.HOST):
        return host_keys.issue(self.database, host, self.now)

    def later(self, seconds=key_cache.TTL_S):
        self.clock += seconds

    def test_a_host_with_a_key(self):
        self.issue()
        caller = self.admit(bus_keys.signer(base.HOST))
        self.assertEqual(base.HOST, caller.host)

    def test_strangers_cost_no_query(self):
        self.database.read = self.database.write = None
        for number in range(50):
            self.refused(
                'wrong',
                bus_keys.signer('stranger%d' % number, master='6b' * 32),
            )
        error = self.assertRaises(
            errors.Unauthenticated,
            self.checked.admit,
            'report',
            ARGUMENTS,
            None,
            False,
        )
        self.assertIn('not signed', str(error))
        self.assertEqual(51, self.checked.refused)

    def test_refusals_are_logged_once_a_minute(self):
        log = self.useFixture(fixtures.FakeLogger())
        for _ in range(30):
            self.refused('wrong', bus_keys.signer('x', master='6b' * 32))
        self.assertEqual(1, log.output.count('requests were refused'))
        self.later(authenticator.LOG_INTERVAL_S)
        self.refused('wrong', bus_keys.signer('x', master='6b' * 32))
        self.assertIn('30 requests were refused', log.output)

    def test_a_key_that_was_never_issued(self):
        self.refused('not accepted', bus_keys.signer(base.HOST))
        self.issue()
        self.later()
        self.admit(bus_keys.signer(base.HOST))
        self.refused('not accepted', bus_keys.signer(base.HOST, 2))

    def test_a_key_that_was_issued_a_moment_ago(self):
        self.issue('other')
        self.admit(bus_keys.signer('other'), arguments={'host': 'other'})
        self.issue()
        self.admit(bus_keys.signer(base.HOST))

    def test_one_query_for_all_hosts(self):
        names = ['host%d' % number for number in range(20)]
        for name in names:
            self.issue(name)
        with mock.patch.object(
            self.database, 'read', wraps=self.database.read
        ) as read:
            for _ in range(3):
                for name in names:
                    self.admit(bus_keys.signer(name))
            self.assertEqual(1, read.call_count)

    def test_refused_keys_cost_a_query_in_two_seconds(self):
        self.issue()
        host_keys.revoke(self.database, base.HOST)
        with mock.patch.object(
            self.database, 'read', wraps=self.database.read
        ) as read:
            for _ in range(20):
                self.refused('not accepted', bus_keys.signer(base.HOST))
            self.assertEqual(2, read.call_count)

    def test_a_rotated_key_is_accepted_until_the_new_one_is_used(self):
        self.issue()
        old, new = (bus_keys.signer(base.HOST, serial) for serial in (1, 2))
        self.admit(old)
        self.assertEqual(
            2, host_keys.rotate(self.database, base.HOST, self.now)
        )
        self.later()
        self.admit(old)
        self.admit(new)
        self.refused('not accepted', old)
        self.admit(new)

    def test_a_rotated_key_is_accepted_for_an_hour_at_most(self):
        self.issue()
        host_keys.rotate(self.database, base.HOST, self.now)
        self.now += 3_599
        self.admit(bus_keys.signer(base.HOST))
        self.now += 1
        self.refused('not accepted', bus_keys.signer(base.HOST))

    def test_a_revoked_key(self):
        self.issue()
        self.admit(bus_keys.signer(base.HOST))
        host_keys.revoke(self.database, base.HOST)
        self.later()
        self.refused('not accepted', bus_keys.signer(base.HOST))
        self.assertEqual(2, self.issue())
        self.later()
        self.refused('not accepted', bus_keys.signer(base.HOST))
        self.admit(bus_keys.signer(base.HOST, 2))

    def test_the_master_key_is_replaced_step_by_step(self):
        self.issue()
        bus_keys.write(
            self.folder,
            'master.key',
            '%s\n%s\n' % ('6b' * 32, bus_keys.MASTER),
        )
        self.admit(bus_keys.signer(base.HOST))
        self.admit(bus_keys.signer(base.HOST, master='6b' * 32))
        bus_keys.write(self.folder, 'master.key', '6b' * 32)
        self.refused('wrong', bus_keys.signer(base.HOST))
        self.admit(bus_keys.signer(base.HOST, master='6b' * 32))

    def test_a_master_key_that_cannot_be_read(self):
        self.issue()
        bus_keys.write(self.folder, 'master.key', bus_keys.MASTER, 0o644)
        error = self.assertRaises(
            errors.Unreachable, self.admit, bus_keys.signer(base.HOST)
        )
        self.assertNotIsInstance(error, errors.Unauthenticated)
        self.assertNotIn(self.folder, str(error))

    def test_what_reads_is_answered_once(self):
        self.issue()
        epoch = 'e' * 32
        self.collector().on_report(
            messages.Report(base.HOST, 1, base.NOW, epoch=epoch)
        )
        signer = bus_keys.signer(base.HOST, epoch=epoch)
        first, second = (
            signer.sign('overrides', ARGUMENTS)[1].to_dict() for _ in range(2)
        )

        def admit(raw, checked=self.checked):
            return checked.admit('overrides', ARGUMENTS, raw, True)

        admit(first)
        admit(second)
        for raw in (first, second):
            self.assertIn(
                'before',
                str(self.assertRaises(errors.Unauthenticated, admit, raw)),
            )
        # Another collector has not heard it; after the host's next report
        # it has heard something newer.
        other = self.make()
        admit(first, other)
        other.admit(
            'report',
            ARGUMENTS,
            signer.sign('report', ARGUMENTS)[1].to_dict(),
            False,
        ).confirm()
        self.assertRaises(errors.Unauthenticated, admit, second, other)

    def test_what_reads_is_of_the_run_that_reported_last(self):
        self.issue()
        signer = bus_keys.signer(base.HOST, epoch='a' * 32)
        self.refused('last', signer, 'overrides', True)
        collector = self.collector()
        for number, epoch in enumerate('ab'):
            collector.on_report(
                messages.Report(
                    base.HOST, 1, base.NOW, epoch=epoch * 32, after=number
                )
            )
        self.refused('last', signer, 'overrides', True)
        self.admit(
            bus_keys.signer(base.HOST, epoch='b' * 32), 'overrides', True
        )

    def test_memory_is_bounded(self):
        for module in (authenticator, key_cache):
            self.useFixture(fixtures.MockPatchObject(module, 'MAX_HOSTS', 3))
        for number in range(6):
            host = 'node%d' % number
            self.issue(host)
            self.admit(bus_keys.signer(host)).confirm()
            self.refused('not accepted', bus_keys.signer('un' + host))
        self.assertEqual(
            (3, 3),
            (len(self.checked._newest), len(self.checked._keys._single)),
        )

    def test_permissive(self):
        checked = self.make(signing.Mode.PERMISSIVE)
        self.assertIs(
            collector_rpc.ANYBODY,
            checked.admit('report', ARGUMENTS, None, False),
        )
        self.refused(
            'wrong', bus_keys.signer('x', master='6b' * 32), checked=checked
        )

    def test_nothing_is_stored_of_strangers(self):
        for number in range(20):
            self.refused('not accepted', bus_keys.signer('n%d' % number))
        for row in (models.Host, models.Event, models.HostKey):
            self.assertEqual(
                0,
                self.database.read(
                    lambda session, row=row: session.query(row).count()
                ),
            )

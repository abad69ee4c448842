# SPDX-License-Identifier: Apache-2.0

"""What every channel to a guest must do, whatever is behind it."""

import concurrent.futures
import typing as ty
import unittest
import uuid as uuids

from vsched_agent.hypervisor import vcpu_channel as channel

#: Only a guest that hangs takes longer.
TIMEOUT_S = 60.0
PATH = '/run/vsched.progress'

# Checked as what they are mixed into, but not collected as tests.
if ty.TYPE_CHECKING:
    _TestCase = unittest.TestCase
else:
    _TestCase = object


class ChannelSuite(_TestCase):
    """Mixed into a test case that has a channel and guests."""

    channel: channel.VcpuChannel
    #: A guest says yes within this, whatever it does then.
    answer_s = 2.0

    # What a channel's tests provide

    def boot(self, vcpus: int) -> str:
        """A guest that is up and answers; its UUID."""
        raise NotImplementedError

    def hang(self, uuid: str) -> None:
        """Its agent answers no more."""
        raise NotImplementedError

    def come_back(self, uuid: str) -> None:
        """Its agent answers again."""
        raise NotImplementedError

    def ignore(self, uuid: str) -> None:
        """It says yes to everything, and does nothing."""
        raise NotImplementedError

    def write_progress(self, uuid: str, text: str) -> None:
        raise NotImplementedError

    # The tests

    def online(self, uuid: str) -> set[int]:
        return set(self.channel.get_vcpus(uuid, TIMEOUT_S).online)

    def set_online(
        self, uuid: str, *wanted: int, timeout_s: float = TIMEOUT_S
    ) -> None:
        found = self.channel.set_online(uuid, frozenset(wanted), timeout_s)
        self.assertEqual(set(wanted), found.online)

    def test_down_and_up(self):
        uuid = self.boot(4)
        guest = self.channel.get_vcpus(uuid, TIMEOUT_S)
        self.assertEqual(
            ({0, 1, 2, 3}, set(), {0}),
            (guest.online, guest.offline, guest.fixed),
        )
        for wanted in ((0,), (0, 1), (0, 1), (0, 1, 2, 3)):
            self.set_online(uuid, *wanted)
            self.assertEqual(set(wanted), self.online(uuid))

    def test_what_no_guest_can_do(self):
        uuid = self.boot(2)
        for wanted in ((), (1,), (0, 1, 2)):
            failure = self.assertRaises(
                channel.ChannelFailed,
                self.channel.set_online,
                uuid,
                frozenset(wanted),
                TIMEOUT_S,
            )
            self.assertTrue(failure.undone)
            self.assertEqual({0, 1}, self.online(uuid))

    def test_many_at_once(self):
        guests = [self.boot(2) for _ in range(2)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda uuid: self.set_online(uuid, 0), guests))
        for uuid in guests:
            self.assertEqual({0}, self.online(uuid))

    def test_a_guest_that_hangs_and_comes_back(self):
        uuid = self.boot(2)
        self.hang(uuid)
        self.assertRaises(
            channel.GuestAgentUnavailable,
            self.channel.set_online,
            uuid,
            frozenset({0}),
            1.0,
        )
        self.come_back(uuid)
        self.assertEqual({0, 1}, self.online(uuid))
        self.set_online(uuid, 0)

    def test_a_guest_that_ignores_it(self):
        uuid = self.boot(2)
        self.ignore(uuid)
        failure = self.assertRaises(
            channel.ChannelFailed,
            self.channel.set_online,
            uuid,
            frozenset({0}),
            self.answer_s,
        )
        self.assertNotIsInstance(failure, channel.GuestAgentUnavailable)
        self.assertEqual({0, 1}, self.online(uuid))

    def test_nobody_there(self):
        uuid = str(uuids.uuid4())
        self.assertRaises(
            channel.GuestAgentUnavailable, self.channel.get_vcpus, uuid, 1.0
        )
        self.assertRaises(
            channel.GuestAgentUnavailable,
            self.channel.progress,
            uuid,
            PATH,
            1.0,
        )
        self.assertEqual({}, self.channel.yields([uuid]))

    def test_progress(self):
        uuid = self.boot(1)
        self.assertIsNone(self.channel.progress(uuid, PATH, TIMEOUT_S))
        self.write_progress(uuid, '1234567')
        self.assertEqual(1234567, self.channel.progress(uuid, PATH, TIMEOUT_S))

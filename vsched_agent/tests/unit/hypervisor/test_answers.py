# SPDX-License-Identifier: Apache-2.0
"""Whatever a guest answers is read, or refused with one kind of error."""

import base64
import json
from unittest import mock

import ddt
import hypothesis
from hypothesis import strategies
import libvirt_qemu
from oslotest import base as test_base

from vsched_agent.hypervisor import answers
from vsched_agent.hypervisor.libvirt import guest_agent
from vsched_agent.hypervisor.libvirt import monitor
from vsched_agent.hypervisor import vcpu_channel
from vsched_agent.profiling.guest import commands
from vsched_agent.tests import hostile_answers

JSON = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats()
    | strategies.text(),
    lambda inner: (
        strategies.lists(inner, max_size=6)
        | strategies.dictionaries(
            strategies.sampled_from(
                (
                    'return',
                    'error',
                    'logical-id',
                    'online',
                    'can-offline',
                    'buf-b64',
                    'cpu-index',
                    'thread-id',
                    'pid',
                    'exited',
                    'exitcode',
                    'out-data',
                    'x',
                )
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)
VCPU = strategies.fixed_dictionaries(
    {
        'logical-id': strategies.integers() | JSON,
        'online': strategies.booleans() | JSON,
    },
    optional={'can-offline': strategies.booleans() | JSON},
)
TEXTS = strategies.one_of(
    strategies.sampled_from(hostile_answers.TEXTS),
    strategies.text(),
    JSON.map(json.dumps),
    JSON.map(lambda value: json.dumps({'return': value})),
    strategies.lists(VCPU, max_size=5).map(
        lambda value: json.dumps({'return': value})
    ),
)


@ddt.ddt
class DecodeTest(test_base.BaseTestCase):
    def test_good(self):
        self.assertEqual(
            {'return': [1, -2.5, 'x', None, True]},
            answers.decode('{"return": [1, -2.5, "x", null, true]}'),
        )
        self.assertEqual({}, answers.returned('{"return": {}, "id": 3}'))

    @ddt.data(
        '1e999',
        '-1e999',
        'NaN',
        'Infinity',
        '9' * 21,
        '9' * 1_000_000,
        str(2**63),
        '{"a": 1, "a": 2}',
        '[' * 100_000,
        '[' * 20 + ']' * 20,
        '{"a":' * 200_000,
        '[' + '0,' * 200_000 + '0]',
        '"' + 'x' * answers.MAX_CHARS + '"',
        '',
        '\x00',
        '{',
        None,
        7,
        b'{}',
    )
    def test_bad(self, text):
        self.assertRaises(answers.MalformedAnswer, answers.decode, text)

    @ddt.data('[]', 'null', '{}', '{"error": {"class": "x"}}')
    def test_nothing_returned(self, text):
        self.assertRaises(answers.MalformedAnswer, answers.returned, text)

    def test_complaints_are_short_and_printable(self):
        for text in hostile_answers.TEXTS:
            try:
                answers.returned(text)
            except answers.MalformedAnswer as problem:
                self.assertLess(len(str(problem)), 500)
                self.assertTrue(str(problem).isprintable(), problem)

    @hypothesis.settings(max_examples=300, deadline=None)
    @hypothesis.given(TEXTS)
    def test_any(self, text):
        try:
            answers.decode(text)
        except answers.MalformedAnswer:
            hypothesis.event('malformed')


class GuestChannelTest(test_base.BaseTestCase):
    """The same through the channel."""

    def ask(self, function, *texts):
        replies = list(texts)
        one = guest_agent.GuestAgentChannel()
        one._call = lambda key, timeout_s, call: (
            replies[0] if len(replies) == 1 else replies.pop(0)
        )
        try:
            return function(one)
        except vcpu_channel.ChannelFailed:
            return None

    @hypothesis.settings(max_examples=300, deadline=None)
    @hypothesis.given(TEXTS)
    def test_vcpus(self, text):
        found = self.ask(lambda one: one.get_vcpus('u', 1.0), text)
        if found is not None:
            self.assertLessEqual(max(found.all, default=0), answers.MAX_VCPUS)
            self.assertLessEqual(len(found.all), answers.MAX_VCPUS)
            self.assertFalse(found.online & found.offline)

    @hypothesis.settings(max_examples=200, deadline=None)
    @hypothesis.given(TEXTS, TEXTS, TEXTS)
    def test_progress(self, opened, read, closed):
        found = self.ask(
            lambda one: one.progress('u', '/x', 1.0), opened, read, closed
        )
        self.assertIsInstance(found, (int, type(None)))

    def test_progress_of_huge_numbers(self):
        for text in ('9' * 21, '-1', 'x', '1e5', '\u0664', ''):
            self.assertIsNone(
                guest_agent.parse_progress(
                    {'buf-b64': base64.b64encode(text.encode()).decode()}
                )
            )

    def test_whatever_the_binding_raises(self):
        one = guest_agent.GuestAgentChannel()
        one._pool = mock.Mock()
        for error in (
            UnicodeDecodeError('utf-8', b'\xff', 0, 1, 'x'),
            RecursionError(),
            MemoryError(),
            SystemError('x'),
            TypeError('x'),
            KeyError('x'),
        ):
            one._pool.run.side_effect = error
            one.start()
            self.addCleanup(one.stop)
            self.assertRaises(
                vcpu_channel.ChannelFailed, one.get_vcpus, 'u', 1.0
            )
            one.stop()


class OthersTest(test_base.BaseTestCase):
    @hypothesis.settings(max_examples=300, deadline=None)
    @hypothesis.given(TEXTS)
    def test_monitor(self, text):
        try:
            found = monitor.parse_vcpus(text)
        except monitor.UnexpectedAnswer:
            return
        self.assertLessEqual(len(found), answers.MAX_VCPUS)

    @hypothesis.settings(max_examples=200, deadline=None)
    @hypothesis.given(TEXTS)
    def test_commands(self, text):
        def reply(*_arguments):
            return text

        with (
            mock.patch.object(libvirt_qemu, 'qemuAgentCommand', reply),
            mock.patch.object(commands, '_LOOK_S', 0),
        ):
            try:
                commands.GuestCommand(mock.Mock(), ['/bin/true'], 0.0).wait(
                    0.0
                )
            except commands.CommandFailed:
                return

# SPDX-License-Identifier: Apache-2.0

"""Commands in guests are started, waited for and ended."""

import base64
import json
from unittest import mock

import libvirt
import libvirt_qemu
from oslotest import base as test_base

from vsched_agent.profiling.guest import commands


class _Refusal(libvirt.libvirtError):
    """An error with a code, without a libvirt to ask for it."""

    def __init__(self, code):
        super().__init__('no agent')
        self._code = code

    def get_error_code(self):
        return self._code


class GuestCommandTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.asked = []
        self.answers = [{'pid': 7}]
        self._use(
            mock.patch.object(libvirt_qemu, 'qemuAgentCommand', self.answer)
        )
        self._use(mock.patch.object(commands, '_LOOK_S', 0))
        self.domain = mock.Mock()
        self.domain.name.return_value = 'one'

    def _use(self, patch):
        patch.start()
        self.addCleanup(patch.stop)

    def answer(self, domain, text, timeout_s, flags):
        question = json.loads(text)
        self.asked.append((question['execute'], question['arguments']))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return json.dumps({'return': answer})

    def command(self):
        return commands.GuestCommand(self.domain, ('/bin/load', 'read', '5'))

    def test_a_command_is_waited_for(self):
        command = self.command()
        self.answers += [
            {'exited': False},
            {
                'exited': True,
                'exitcode': 0,
                'out-data': base64.b64encode(b'done').decode(),
            },
        ]
        self.assertEqual('done', command.wait(60))
        self.assertEqual(
            (
                'guest-exec',
                {
                    'path': '/bin/load',
                    'arg': ['read', '5'],
                    'capture-output': True,
                },
            ),
            self.asked[0],
        )
        self.assertEqual(('guest-exec-status', {'pid': 7}), self.asked[-1])

    def test_a_command_is_ended(self):
        command = self.command()
        self.answers += [{'pid': 8}, {'exited': True, 'exitcode': 0}]
        self.assertEqual('', command.stop())
        self.assertEqual(
            ('guest-exec', {'path': '/bin/kill', 'arg': ['7']}), self.asked[1]
        )

    def test_an_agent_that_is_not_there_yet_is_waited_for(self):
        self.answers.insert(0, _Refusal(libvirt.VIR_ERR_AGENT_UNRESPONSIVE))
        self.command()
        self.assertEqual(2, len(self.asked))

    def test_failures_name_the_command_and_the_guest(self):
        command = self.command()
        self.answers += [
            {
                'exited': True,
                'exitcode': 2,
                'err-data': base64.b64encode(b'no such thing').decode(),
            }
        ]
        problem = self.assertRaises(commands.CommandFailed, command.wait, 60)
        self.assertEqual(
            '/bin/load read 5 in guest one: no such thing', str(problem)
        )

    def test_a_command_that_does_not_end(self):
        command = self.command()
        self.answers += [{'exited': False}]
        problem = self.assertRaises(commands.CommandFailed, command.wait, -1)
        self.assertIn('does not end', str(problem))

    def test_an_answer_that_is_none(self):
        self.answers = [_Refusal(libvirt.VIR_ERR_NO_DOMAIN)]
        self.assertRaises(commands.CommandFailed, self.command)
        libvirt_qemu.qemuAgentCommand = lambda *arguments: '{}'
        self.assertRaises(commands.CommandFailed, self.command)

# SPDX-License-Identifier: Apache-2.0

"""Runs commands inside a guest, through its agent (``guest-exec``)."""

import base64
from collections.abc import Mapping
from collections.abc import Sequence
import json
import time
import typing as ty

import libvirt
import libvirt_qemu

from vsched_agent.hypervisor import answers

#: Longest wait for one answer, in seconds.
ANSWER_S = 20
_LOOK_S = 0.1

# Until the guest has opened its end of the channel, and while it boots.
_NOT_YET = (libvirt.VIR_ERR_AGENT_UNRESPONSIVE, libvirt.VIR_ERR_AGENT_UNSYNCED)


class CommandFailed(Exception):
    """A command in a guest did not do what it should."""


class GuestCommand:
    """A command that runs in a guest.

    :param domain: the guest.
    :param words: the command's path and its arguments.
    :param ready_timeout_s: longest wait for the guest's agent to be there.
    :raises CommandFailed: when it can not be started.
    """

    def __init__(
        self,
        domain: libvirt.virDomain,
        words: Sequence[str],
        ready_timeout_s: float = 30.0,
    ) -> None:
        self._domain = domain
        self._words = tuple(words)
        started = self._ask(
            'guest-exec',
            {'path': words[0], 'arg': list(words[1:]), 'capture-output': True},
            ready_timeout_s,
        )
        try:
            self._pid = answers.integer(started.get('pid'), 0, 2**63 - 1)
        except answers.MalformedAnswer as problem:
            raise self._failed('its process: %s' % problem) from None

    def stop(self, timeout_s: float = 10.0) -> str:
        """Ask it to end, and wait until it has.

        :returns: what it printed.
        :raises CommandFailed: when it failed, or does not end.
        """
        self._ask('guest-exec', {'path': '/bin/kill', 'arg': [str(self._pid)]})
        return self.wait(timeout_s)

    def wait(self, timeout_s: float) -> str:
        """Wait for its end.

        :returns: what it printed.
        :raises CommandFailed: when it failed, or does not end.
        """
        limit_s = time.monotonic() + timeout_s
        while True:
            found = self._ask('guest-exec-status', {'pid': self._pid})
            if found.get('exited'):
                break
            if time.monotonic() > limit_s:
                raise self._failed('it does not end')
            time.sleep(_LOOK_S)
        if found.get('exitcode') != 0:
            raise self._failed(
                self._text(found, 'err-data') or answers.quote(found)
            )
        return self._text(found, 'out-data')

    def _text(self, found: Mapping[str, ty.Any], name: str) -> str:
        data = found.get(name, '')
        try:
            return base64.b64decode(data).decode(errors='replace')
        except (ValueError, TypeError):
            raise self._failed(
                '%s: %s' % (name, answers.quote(data))
            ) from None

    def _ask(
        self,
        command: str,
        arguments: Mapping[str, ty.Any],
        patience_s: float = 0.0,
    ) -> Mapping[str, ty.Any]:
        text = json.dumps({'execute': command, 'arguments': arguments})
        limit_s = time.monotonic() + patience_s
        while True:
            try:
                return answers.mapping(
                    answers.returned(
                        libvirt_qemu.qemuAgentCommand(
                            self._domain, text, ANSWER_S, 0
                        )
                    )
                )
            except libvirt.libvirtError as problem:
                if (
                    problem.get_error_code() not in _NOT_YET
                    or time.monotonic() > limit_s
                ):
                    raise self._failed(str(problem)) from None
            except ValueError as problem:
                raise self._failed(
                    "the agent's answer: %s" % problem
                ) from None
            time.sleep(_LOOK_S)

    def _failed(self, why: str) -> CommandFailed:
        return CommandFailed(
            '%s in guest %s: %s'
            % (' '.join(self._words), self._domain.name(), why)
        )

# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Perf events that one helper opens for another: CAP_PERFMON.

Who is woken by an event has tens of microseconds to act on it, too few to
tell another process. So the helper that may open events hands them to the
one that acts, which then needs no such power: descriptors go over a socket
from process to process (unix(7), SCM_RIGHTS).
"""

from collections.abc import Iterable
import errno
import os
import socket
import struct

from vsched_agent.privileged import clocks
from vsched_agent.privileged import perf_events

#: As many descriptors fit into a message (SCM_MAX_FD is 253).
_MOST = 128
_TID = struct.Struct('=i')
_PEER = struct.Struct('=3i')
_TIMEOUT_S = 2.0
#: The first time that a thread's event goes off; its borrower knows better.
_FIRST_NS = 1_000_000


class Inbox:
    """Where events are sent to, by helpers of the same user only.

    :ivar address: of a socket without a name in the file system.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            # The kernel gives it an address that nobody has.
            self._socket.bind('')
            self._socket.listen()
            self._socket.setblocking(False)
        except BaseException:
            self.close()
            raise
        self.address: bytes = self._socket.getsockname()

    def close(self) -> None:
        """Take nothing more."""
        self._socket.close()

    def take(self) -> dict[int, int]:
        """What has arrived.

        :returns: by thread, the descriptor of its event, now the caller's.
        """
        found: dict[int, int] = {}
        while True:
            try:
                sender, _ = self._socket.accept()
            except BlockingIOError:
                return found
            with sender:
                if _user(sender) == os.geteuid():
                    sender.setblocking(False)
                    _receive(sender, found)


def _user(sender: socket.socket) -> int:
    _, user, _ = _PEER.unpack(sender.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return int(user)


def _receive(sender: socket.socket, found: dict[int, int]) -> None:
    while True:
        try:
            data, descriptors, _, _ = socket.recv_fds(
                sender, _MOST * _TID.size, _MOST)
        except BlockingIOError:
            return
        tids = [tid for tid, in _TID.iter_unpack(data)]
        for tid, descriptor in zip(tids, descriptors, strict=False):
            os.set_inheritable(descriptor, False)
            if tid in found:
                os.close(found[tid])
            found[tid] = descriptor
        # There was no room for all.
        for descriptor in descriptors[len(tids):]:
            os.close(descriptor)
        if not data:
            return


@clocks.perf_pctxt.entrypoint
def lend(tids: Iterable[int], address: bytes) -> dict[int, int]:
    """Have the kernel ring when threads have run for a while.

    :param tids: threads; those without an event are left out.
    :param address: of the :class:`Inbox` that gets their events.
    :returns: by thread that was left out, the kernel's errno.
    :raises OSError: when nobody is there, or who is not a helper.
    """
    missing: dict[int, int] = {}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sender:
        sender.settimeout(_TIMEOUT_S)
        sender.connect(address)
        # Whoever asks for it need not be who may have it.
        if _user(sender) != os.geteuid():
            raise PermissionError(errno.EPERM, 'of another user')
        left = list(tids)
        while left:
            batch, left = left[:_MOST], left[_MOST:]
            events: dict[int, int] = {}
            try:
                for tid in batch:
                    try:
                        events[tid] = perf_events.open_event(
                            perf_events.attr(
                                perf_events.TASK_CLOCK, period_ns=_FIRST_NS,
                                wakeup_events=1), tid)
                    except OSError as problem:
                        missing[tid] = problem.errno or -1
                if events:
                    socket.send_fds(
                        sender, [b''.join(map(_TID.pack, events))],
                        list(events.values()))
            finally:
                for descriptor in events.values():
                    os.close(descriptor)
    return missing

# SPDX-License-Identifier: Apache-2.0

"""Open perf events in one helper for another: CAP_PERFMON.

An event must be handled within tens of microseconds, too few to notify
another process. So the helper with the capability opens the events and passes
their descriptors over a socket (unix(7), SCM_RIGHTS) to the one that handles
them, which needs no such capability.
"""

from collections.abc import Iterable
import errno
import os
import socket
import struct

from vsched_agent.privileged import clocks
from vsched_agent.privileged import ownership
from vsched_agent.privileged import perf_events

#: As many descriptors fit into a message (SCM_MAX_FD is 253).
_MOST = 128
_TID = struct.Struct('=i')
_PEER = struct.Struct('=3i')
_TIMEOUT_S = 2.0
#: Initial period of an event; the receiving helper sets its own.
_FIRST_NS = 1_000_000


class Inbox:
    """Receives events from helpers of the same user only.

    :ivar address: of a socket without a name in the file system.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            # The kernel assigns a unique address.
            self._socket.bind('')
            self._socket.listen()
            self._socket.setblocking(False)
        except BaseException:
            self.close()
            raise
        self.address: bytes = self._socket.getsockname()

    def close(self) -> None:
        """Receive no more events."""
        self._socket.close()

    def take(self) -> dict[int, int]:
        """Return the events that have arrived.

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
    _, user, _ = _PEER.unpack(
        sender.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    )
    return int(user)


def _receive(sender: socket.socket, found: dict[int, int]) -> None:
    while True:
        try:
            data, descriptors, _, _ = socket.recv_fds(
                sender, _MOST * _TID.size, _MOST
            )
        except BlockingIOError:
            return
        tids = [tid for (tid,) in _TID.iter_unpack(data)]
        for tid, descriptor in zip(tids, descriptors, strict=False):
            os.set_inheritable(descriptor, False)
            if tid in found:
                os.close(found[tid])
            found[tid] = descriptor
        # Close descriptors without a thread.
        for descriptor in descriptors[len(tids) :]:
            os.close(descriptor)
        if not data:
            return


@clocks.perf_pctxt.entrypoint
def lend(tids: Iterable[int], address: bytes) -> dict[int, int]:
    """Open task clock events of threads and send them to an inbox.

    :param tids: threads; those without an event are left out.
    :param address: of the :class:`Inbox` that gets their events.
    :returns: by thread that was left out, the kernel's errno; EPERM for
        threads that vsched does not own.
    :raises OSError: when nothing listens there, or another user's process.
    """
    wanted = tuple(tids)
    missing = dict.fromkeys(ownership.refusals(wanted), errno.EPERM)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sender:
        sender.settimeout(_TIMEOUT_S)
        sender.connect(address)
        # The caller chose the address, so the peer must be verified.
        if _user(sender) != os.geteuid():
            raise PermissionError(errno.EPERM, 'of another user')
        left = [tid for tid in wanted if tid not in missing]
        while left:
            batch, left = left[:_MOST], left[_MOST:]
            events: dict[int, int] = {}
            try:
                for tid in batch:
                    try:
                        events[tid] = perf_events.open_event(
                            perf_events.attr(
                                perf_events.TASK_CLOCK,
                                period_ns=_FIRST_NS,
                                wakeup_events=1,
                            ),
                            tid,
                        )
                    except OSError as problem:
                        missing[tid] = problem.errno or -1
                if events:
                    socket.send_fds(
                        sender,
                        [b''.join(map(_TID.pack, events))],
                        list(events.values()),
                    )
            finally:
                for descriptor in events.values():
                    os.close(descriptor)
    return missing

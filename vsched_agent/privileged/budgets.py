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

"""Budgets that end before the kernel's tick: CAP_SYS_NICE.

A helper of its own, because its looks must not wait for what the scheduling
helper does, nor that for them. They end with the helper, and it with the
agent; the threads that were looked at stay in the class, with parameters
that may be a nanosecond off.

The events that tell it of a budget's end it has from
:mod:`vsched_agent.privileged.lending`.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import contextlib
import errno
import threading

from oslo_privsep import capabilities

from vsched_agent.privileged import checking
from vsched_agent.privileged import context
from vsched_agent.privileged import entering
from vsched_agent.privileged import lending

budgets_pctxt = context.Context(
    'budgets_pctxt', __name__, 'vsched_budgets_privileged',
    [capabilities.CAP_SYS_NICE])

#: More that nobody comes back for are closed, the oldest first.
_MOST_INBOXES = 64

_checker = checking.Checker()
_lock = threading.Lock()
_inboxes: dict[bytes, lending.Inbox] = {}


@budgets_pctxt.entrypoint
def borrow() -> bytes:
    """Be ready for threads' events.

    :returns: where to send them, for
        :func:`vsched_agent.privileged.lending.lend` and :func:`watch`.
    """
    inbox = lending.Inbox()
    with _lock:
        _inboxes[inbox.address] = inbox
        while len(_inboxes) > _MOST_INBOXES:
            _inboxes.pop(next(iter(_inboxes))).close()
    return inbox.address


def _borrowed(address: bytes) -> dict[int, int]:
    with _lock:
        inbox = _inboxes.pop(address, None)
    if inbox is None:
        return {}
    with contextlib.closing(inbox):
        return inbox.take()


@budgets_pctxt.entrypoint
def watch(requests: Iterable[Sequence[int]], check_us: int,
          address: bytes = b'') -> int:
    """Look at the budgets of threads that are in the class.

    :param requests: (tid, runtime_ns, period_ns, flags) a thread, as it was
        given to :func:`vsched_agent.privileged.sched.set_deadline`.
    :param check_us: how soon after its end a budget is looked at, and how
        often of a thread without an event.
    :param address: of :func:`borrow`, where their events are.
    :returns: 0, or the kernel's errno when it does not let the helper's
        own thread into the class; nothing is looked at then.
    """
    try:
        _checker.watch([entering.Request(*request) for request in requests],
                       check_us, _borrowed(address))
    except OSError as failure:
        return failure.errno or errno.EINVAL
    return 0


@budgets_pctxt.entrypoint
def forget(tids: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """Look at threads no longer; nothing touches them when this returns.

    :returns: (tid, runtime_ns, period_ns, flags) of those that were looked
        at, which is exactly what they have now.
    """
    return tuple(tuple(request) for request in _checker.forget(tids))


@budgets_pctxt.entrypoint
def stop() -> None:
    """Look at nothing, and hold nothing."""
    _checker.stop()
    with _lock:
        while _inboxes:
            _inboxes.popitem()[1].close()

# SPDX-License-Identifier: Apache-2.0

"""Entrypoints of the helper that checks budget expiry: CAP_SYS_NICE.

It throttles threads whose budget expires between two ticks, and grants idle
CPU time (:mod:`vsched_agent.privileged.reclaiming`).

It is a separate helper so that its checks and the scheduling helper do not
delay each other. The checks end with the helper, and the helper with the
agent; checked threads stay in the class, with parameters that may be a
nanosecond off.

The perf events that signal a budget's end are passed to it by
:mod:`vsched_agent.privileged.budget_expiry.lending`.
"""

import atexit
from collections.abc import Iterable
from collections.abc import Sequence
import contextlib
import errno
import threading
import typing as ty

from oslo_privsep import capabilities

from vsched_agent.privileged.budget_expiry import checking
from vsched_agent.privileged.budget_expiry import lending
from vsched_agent.privileged import context
from vsched_agent.privileged import entering
from vsched_agent.privileged import ownership
from vsched_agent.privileged import reclaiming

budgets_pctxt = context.Context(
    'budgets_pctxt',
    __name__,
    'vsched_budgets_privileged',
    [capabilities.CAP_SYS_NICE],
)

#: The oldest inboxes beyond this number are closed; their callers are gone.
_MOST_INBOXES = 64

_checker = checking.Checker()
_governor = reclaiming.Governor(_checker.set_flags)
_lock = threading.Lock()
_inboxes: dict[bytes, lending.Inbox] = {}


@budgets_pctxt.entrypoint
def borrow() -> bytes:
    """Open an inbox for threads' perf events.

    :returns: its address, for
        :func:`vsched_agent.privileged.budget_expiry.lending.lend` and
            :func:`watch`.
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
def watch(
    requests: Iterable[Sequence[int]], check_us: int, address: bytes = b''
) -> int:
    """Check the budgets of SCHED_DEADLINE threads from now on.

    :param requests: (tid, runtime_ns, period_ns, flags) per thread, as passed
        to :func:`vsched_agent.privileged.sched.set_deadline`.
    :param check_us: longest delay of a check after a budget's end, and the
        interval of checks for threads without an event.
    :param address: from :func:`borrow`, of the inbox with their events.
    :returns: 0, or the kernel's errno when it does not admit the
        helper's own thread to the class; nothing is checked then.
    :raises PermissionError: for a thread that vsched does not own.
    """
    wanted = [_as_held(request) for request in requests]
    ownership.check(one.tid for one in wanted)
    try:
        _checker.watch(wanted, check_us, _borrowed(address))
    except OSError as failure:
        return failure.errno or errno.EINVAL
    return 0


@budgets_pctxt.entrypoint
def forget(tids: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """Stop checking threads; they are not changed after this returns.

    :returns: (tid, runtime_ns, period_ns, flags) of those that were checked,
        exactly as they are set now.
    """
    return tuple(tuple(request) for request in _checker.forget(tids))


def _as_held(request: Sequence[int]) -> entering.Request:
    # The caller does not know whether the thread reclaims now.
    one = entering.Request(*request)
    return one._replace(flags=one.flags | _governor.flags(one.tid))


@budgets_pctxt.entrypoint
def reclaim(requests: Iterable[Sequence[int]]) -> int:
    """Let SCHED_DEADLINE threads use idle CPU time.

    :param requests: (tid, runtime_ns, period_ns, flags) per thread.
    :returns: 0, or the kernel's errno when it does not admit the helper's own
        thread to the class; no thread uses idle time then.
    :raises PermissionError: for a thread that vsched does not own.
    """
    wanted = [entering.Request(*request) for request in requests]
    ownership.check(one.tid for one in wanted)
    # Clear the flags when the helper ends with the agent.
    atexit.unregister(_governor.stop)
    atexit.register(_governor.stop)
    try:
        _governor.watch(wanted)
    except OSError as failure:
        return failure.errno or errno.EINVAL
    return 0


@budgets_pctxt.entrypoint
def stop_reclaiming(tids: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """Stop threads from using idle CPU time.

    :returns: (tid, runtime_ns, period_ns, flags) of those that could use it.
    """
    return tuple(tuple(request) for request in _governor.forget(tids))


@budgets_pctxt.entrypoint
def renew() -> dict[str, ty.Any]:
    """Renew the agent's lease; without it nothing is reclaimed.

    :returns: see :meth:`vsched_agent.privileged.reclaiming.Governor.renew`.
    """
    return _governor.renew()


@budgets_pctxt.entrypoint
def report() -> dict[str, float]:
    """Return the state of the budget expiry checks.

    :returns: see
        :meth:`vsched_agent.privileged.budget_expiry.checking.Checker.report`.
    """
    return _checker.report()


@budgets_pctxt.entrypoint
def stop() -> None:
    """Stop all checks and release all resources."""
    _governor.stop()
    _checker.stop()
    with _lock:
        while _inboxes:
            _inboxes.popitem()[1].close()

# SPDX-License-Identifier: Apache-2.0

"""What the backends of Xen share: support, vCPUs by number, and failures."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
import contextlib

from vsched_agent.enforcement import base
from vsched_agent.enforcement.xen import scheduler
from vsched_agent.hypervisor.xen import vcpu_ids
from vsched_lib.contract import errors
from vsched_lib.model import reservation


def support(
    name: reservation.Backend,
    found: scheduler.Scheduler,
    missing: Callable[[scheduler.Scheduler], str],
) -> base.Support:
    """Return whether the hypervisor runs a backend's scheduler, on one pool.

    :param name: the backend, named like its scheduler.
    :param missing: returns why another scheduler runs.
    """
    try:
        if found.name != str(name):
            return base.Support(False, (missing(found),))
        pools = found.pools
    except scheduler.SchedulerUnavailable as failure:
        return base.Support(False, (str(failure),))
    if pools != 1:
        return base.Support(
            False,
            (
                '%s schedules %d CPU pools, and reservations are supported '
                'with one only' % (name, pools),
            ),
        )
    return base.Support(True)


@contextlib.contextmanager
def refused_if_unavailable() -> Iterator[None]:
    """Refuse a reservation when the hypervisor does not answer.

    :raises errors.Refused: with the reason.
    """
    try:
        yield
    except scheduler.SchedulerUnavailable as failure:
        raise errors.Refused(
            'the hypervisor does not answer: %s' % failure,
            errors.Code.BACKEND_UNAVAILABLE,
        ) from failure


def refused(problem: str) -> errors.Refused:
    """Return the refusal of the hypervisor, or of the helper."""
    return errors.Refused(
        'the hypervisor refused it: %s' % problem, errors.Code.KERNEL_REFUSED
    )


def not_restored(problem: str) -> scheduler.SchedulerUnavailable:
    """Return the failure to restore vCPUs that still run."""
    return scheduler.SchedulerUnavailable(
        'former parameters are not restored: %s' % problem
    )


def key_of(number: int) -> scheduler.Key | None:
    """Return the domain and the index of a vCPU; None for a thread."""
    try:
        return vcpu_ids.decode(number)
    except ValueError:
        # A thread of Linux, of another backend's records.
        return None


def check_all_run(wanted: Collection[int], found: Collection[int]) -> None:
    """Refuse vCPUs of domains that have ended.

    :raises errors.Refused: with their numbers.
    """
    ended = sorted(set(wanted) - set(found))
    if ended:
        raise errors.Refused(
            'vCPUs are gone: %s' % ', '.join(map(_describe, ended)),
            errors.Code.THREADS_GONE,
        )


def _describe(number: int) -> str:
    key = key_of(number)
    return str(number) if key is None else '%d of domain %d' % (key[1], key[0])

# SPDX-License-Identifier: Apache-2.0

"""What the backends of Xen have in common: vCPUs by number, and failures."""

from collections.abc import Collection
from collections.abc import Iterator
import contextlib

from vsched_agent.enforcement.xen import scheduler
from vsched_agent.hypervisor.xen import vcpu_ids
from vsched_lib.contract import errors


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

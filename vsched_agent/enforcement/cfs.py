# SPDX-License-Identifier: Apache-2.0

"""Reservations as CPU bandwidth of the vCPU's control group.

A quota caps and guarantees nothing, so backend deadline is preferred.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import errno
import os
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.enforcement import base
from vsched_agent.host import cgroup
from vsched_agent.privileged import cgroup as privileged_cgroup
from vsched_lib.contract import errors
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

#: The kernel's default: no quota, in periods of 100 ms.
NO_QUOTA = -1
DEFAULT_PERIOD_US = 100_000

#: How long a thread's group is cached, in seconds. Threads rarely move, and
#: looking the group up costs as much as reading its quota.
_PLACE_AGE_S = 10.0

_V1_QUOTA = 'cpu.cfs_quota_us'
_V1_PERIOD = 'cpu.cfs_period_us'
_V2_MAX = 'cpu.max'


class CfsBackend(base.Backend):
    """Caps each thread at Q in every P, in its own control group.

    :param cgroups: the host's control groups.
    :param clock: monotonic seconds.
    :param root: root of the file system; tests use their own.
    """

    name = reservation.Backend.CFS

    def __init__(
        self,
        cgroups: cgroup.Cgroups | None = None,
        clock: Callable[[], float] = time.monotonic,
        root: str = '/',
    ) -> None:
        self._cgroups = cgroups or cgroup.Cgroups(root)
        self._clock = clock
        self._places: dict[int, tuple[float, cgroup.Place]] = {}

    def supports(self) -> base.Support:
        """Return whether the cpu controller is mounted and has quotas."""
        mount = self._cgroups.mount('cpu')
        if mount is None:
            return base.Support(
                False,
                ('no cgroup hierarchy has the cpu controller; mount one',),
            )
        if mount.version == 1 and not os.path.exists(
            os.path.join(mount.point, _V1_QUOTA)
        ):
            return base.Support(
                False,
                (
                    'the cpu controller has no quotas; the kernel needs '
                    'CONFIG_CFS_BANDWIDTH',
                ),
            )
        return base.Support(
            True,
            (
                'a quota caps and guarantees nothing: on a busy host an '
                'instance can get less',
            ),
        )

    def prior(self, targets: Sequence[base.Target]) -> dict[int, base.Prior]:
        """Return quota and period of each thread's group."""
        found: dict[int, base.Prior] = {}
        for target in targets:
            try:
                place = self._own_place(target)
                quota_us, period_us = _limits(place)
            except (ProcessLookupError, FileNotFoundError):
                continue
            except errors.Refused as refusal:
                # Apply refuses it for the same reason.
                LOG.debug('%s', refusal.detail)
                continue
            found[target.tid] = {'quota_us': quota_us, 'period_us': period_us}
        return found

    def apply_each(self, assignments: Sequence[base.Assignment]) -> None:
        """See the base class; needs mode ``capped``."""
        values: list[tuple[str, str]] = []
        try:
            for target, reserved in assignments:
                if reserved.mode is not reservation.Mode.CAPPED:
                    raise errors.Refused(
                        '; '.join(reserved.problems(self.name)),
                        errors.Code.RESERVATION_INVALID,
                    )
                place = self._own_place(target)
                values += _change(
                    place,
                    _limits(place),
                    (reserved.runtime_us, reserved.period_us),
                )
        except (ProcessLookupError, FileNotFoundError) as failure:
            raise errors.Refused(
                'a vCPU thread is gone: %s' % failure, errors.Code.THREADS_GONE
            ) from None
        if not values:
            return
        failed = privileged_cgroup.write(values)
        if failed:
            if failed['unrestored']:
                LOG.error(
                    'the former values of groups were not restored: %s',
                    ', '.join(failed['unrestored']),
                )
            raise self._refusal(failed, assignments[0][1])

    def read(
        self, targets: Sequence[base.Target]
    ) -> dict[int, base.Enforced | None]:
        """See the base class; reads one or two files per thread."""
        found: dict[int, base.Enforced | None] = {}
        for target in targets:
            try:
                found[target.tid] = self._enforced(target.tid)
            except ProcessLookupError:
                self._places.pop(target.tid, None)
        return found

    def restore(
        self, targets: Sequence[base.Target], prior: Mapping[int, base.Prior]
    ) -> None:
        """See the base class."""
        for target in targets:
            found = prior.get(target.tid, {})
            limits = (
                int(found.get('quota_us', NO_QUOTA)),
                int(found.get('period_us', DEFAULT_PERIOD_US)),
            )
            try:
                place = self._own_place(target)
                values = _change(place, _limits(place), limits)
            except (ProcessLookupError, FileNotFoundError):
                continue
            except errors.Refused as refusal:
                LOG.warning('nothing is restored: %s', refusal.detail)
                continue
            failed = privileged_cgroup.write(values)
            if failed and os.path.exists(failed['path']):
                LOG.error(
                    '%s cannot be restored: %s',
                    failed['path'],
                    os.strerror(failed['errno']),
                )

    def _enforced(self, tid: int) -> base.Enforced | None:
        now = self._clock()
        at, place = self._places.get(tid, (0.0, None))
        for _ in range(2):
            if place is None or now - at >= _PLACE_AGE_S:
                at, place = now, self._cgroups.place(tid, 'cpu')
                if place is None:
                    return None
                self._places[tid] = at, place
            try:
                quota_us, period_us = _limits(place)
            except FileNotFoundError:
                # The group was removed: the thread has ended or moved.
                place = None
                continue
            return (
                None
                if quota_us == NO_QUOTA
                else base.Enforced(
                    quota_us * reservation.NS_PER_US,
                    period_us * reservation.NS_PER_US,
                    reservation.Mode.CAPPED,
                )
            )
        return None

    def _own_place(self, target: base.Target) -> cgroup.Place:
        place = self._cgroups.place(target.tid, 'cpu')
        if place is None:
            raise errors.Refused(
                'no cgroup hierarchy has the cpu controller',
                errors.Code.BACKEND_UNAVAILABLE,
            )
        if place.parent is None or not self._cgroups.is_alone(
            target.tid, place
        ):
            raise errors.Refused(
                'vCPU %d: thread %d has no cpu group of its own, it shares '
                '%s; libvirt makes one for each vCPU when its qemu driver '
                'has the cpu controller (cgroup_controllers in qemu.conf)'
                % (target.index, target.tid, place.path),
                errors.Code.BACKEND_UNAVAILABLE,
                {'vcpu': target.index, 'tid': target.tid, 'group': place.path},
            )
        if place.version == 2 and not os.path.exists(place.file(_V2_MAX)):
            raise errors.Refused(
                'vCPU %d: group %s has no %s; add cpu to the '
                'cgroup.subtree_control of the groups above'
                % (target.index, place.path, _V2_MAX),
                errors.Code.BACKEND_UNAVAILABLE,
            )
        return place

    def _refusal(
        self, failed: Mapping[str, ty.Any], reserved: reservation.Reservation
    ) -> errors.Refused:
        path, number = failed['path'], failed['errno']
        if number == errno.ENOENT:
            return errors.Refused(
                'group %s is gone' % os.path.dirname(path),
                errors.Code.THREADS_GONE,
            )
        figures: dict[str, ty.Any] = {
            'group': os.path.dirname(path),
            'errno': number,
            'quota_us': reserved.runtime_us,
            'period_us': reserved.period_us,
        }
        above = _limit_above(os.path.dirname(path))
        if number == errno.EINVAL and above is not None:
            figures['parent_quota_us'], figures['parent_period_us'] = above
            return errors.Refused(
                'the group above %s has %d us in %d us, less than the %d us '
                'in %d us asked for'
                % (
                    os.path.dirname(path),
                    *above,
                    reserved.runtime_us,
                    reserved.period_us,
                ),
                errors.Code.KERNEL_REFUSED,
                figures,
            )
        return errors.Refused(
            'the kernel refused %s: %s' % (path, os.strerror(number)),
            errors.Code.KERNEL_REFUSED,
            figures,
        )


def _limits(place: cgroup.Place) -> tuple[int, int]:
    # (quota or NO_QUOTA, period), in microseconds.
    if place.version == 1:
        return int(place.read(_V1_QUOTA)), int(place.read(_V1_PERIOD))
    quota, period = place.read(_V2_MAX).split()
    return NO_QUOTA if quota == 'max' else int(quota), int(period)


def _change(
    place: cgroup.Place, now: tuple[int, int], wanted: tuple[int, int]
) -> list[tuple[str, str]]:
    if now == wanted:
        return []
    quota_us, period_us = wanted
    if place.version == 2:
        return [
            (
                place.file(_V2_MAX),
                '%s %d'
                % ('max' if quota_us == NO_QUOTA else quota_us, period_us),
            )
        ]
    # Between the two writes the kernel checks the ratio against the limits of
    # the parent groups: choose the order with the lower ratio.
    quota = (place.file(_V1_QUOTA), str(quota_us))
    period = (place.file(_V1_PERIOD), str(period_us))
    return [period, quota] if period_us > now[1] else [quota, period]


def _limit_above(folder: str) -> tuple[int, int] | None:
    while True:
        folder = os.path.dirname(folder)
        try:
            quota_us = int(cgroup.read_text(os.path.join(folder, _V1_QUOTA)))
            period_us = int(cgroup.read_text(os.path.join(folder, _V1_PERIOD)))
        except FileNotFoundError:
            return None
        if quota_us != NO_QUOTA:
            return quota_us, period_us

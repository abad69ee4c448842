# SPDX-License-Identifier: Apache-2.0

"""Bind vCPU threads, force preemption and move reservations."""

from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import functools
import os
import typing as ty

from oslo_log import log as logging

from vsched_agent.ballooning import base
from vsched_agent.ballooning import preemption
from vsched_agent.ballooning import vcpu_set
from vsched_agent.enforcement import affinity
from vsched_agent.enforcement import base as enforcement
from vsched_agent.hypervisor import base as hypervisor
from vsched_lib.contract import errors

LOG = logging.getLogger(__name__)


def vcpu_set_of(record: base.Record) -> vcpu_set.VcpuSet:
    """Return the vCPUs that hold the reservation during a balloon."""
    return vcpu_set.VcpuSet(
        record.pid, frozenset(record.online), dict(record.pins)
    )


class LocalHostActions:
    """Implements :class:`base.HostActions`.

    :param vcpu_sets: moves reservations.
    :param turn_us: interval of forced preemption; 0 disables it.
    """

    def __init__(self, vcpu_sets: vcpu_set.VcpuSets, turn_us: int = 0) -> None:
        self._vcpu_sets = vcpu_sets
        self._affinity = affinity.Affinity()
        self._preemption = preemption.ForcedPreemption(turn_us)

    def prepare(self) -> None:
        """See :class:`base.HostActions`."""
        self._preemption.prepare()

    def preempt_faster(
        self, domain: hypervisor.Domain, limit_s: float
    ) -> contextlib.AbstractContextManager[None]:
        """See :class:`base.HostActions`."""
        return self._preemption.enabled(
            [vcpu.tid for vcpu in domain.vcpus], limit_s
        )

    def found(
        self, domain: hypervisor.Domain, indexes: Sequence[int]
    ) -> Sequence[Mapping[str, ty.Any]] | None:
        """See :class:`base.HostActions`."""
        found = []
        try:
            for target in _targets(domain, dict.fromkeys(indexes, 0)):
                one = self._affinity.confinement(target)
                found.append(
                    {
                        'tid': one.tid,
                        'path': one.path,
                        'cpuset': one.cpuset,
                        'cpus': sorted(one.cpus),
                    }
                )
        except (errors.Refused, ProcessLookupError) as failure:
            LOG.warning(
                '%s: its vCPUs are not bound: %s', domain.name, failure
            )
            return None
        return found

    def bind(self, domain: hypervisor.Domain, pins: Mapping[int, int]) -> None:
        """See :class:`base.HostActions`."""
        try:
            with self._affinity.widened(_targets(domain, pins)):
                pass
        except ProcessLookupError as failure:
            raise errors.Refused(
                'a vCPU thread has ended: %s' % failure,
                errors.Code.THREADS_GONE,
            ) from None

    def forget(self, uuid: str) -> None:
        """See :class:`base.HostActions`."""
        self._vcpu_sets.forget(uuid)

    def move_reservation(
        self,
        uuid: str,
        record: base.Record | None,
        unpin: base.Record | None = None,
    ) -> None:
        """See :class:`base.HostActions`."""
        self._vcpu_sets.move_reservation(
            uuid,
            None if record is None else vcpu_set_of(record),
            unpin=None
            if unpin is None
            else functools.partial(self._unbind, unpin),
        )

    def _unbind(self, record: base.Record) -> None:
        self._affinity.confine(
            [
                affinity.Confinement(
                    one['tid'],
                    one['path'],
                    one['cpuset'],
                    frozenset(one['cpus']),
                )
                for one in record.found
                if os.path.exists(
                    '/proc/%d/task/%d' % (record.pid, one['tid'])
                )
            ]
        )


class OfflineHostActions(LocalHostActions):
    """For use without a reconciler: reservations are restored separately."""

    def move_reservation(
        self,
        uuid: str,
        record: base.Record | None,
        unpin: base.Record | None = None,
    ) -> None:
        if unpin is not None:
            self._unbind(unpin)
        self._vcpu_sets.forget(uuid)


def _targets(
    domain: hypervisor.Domain, pins: Mapping[int, int]
) -> list[enforcement.Target]:
    return [
        enforcement.Target(
            vcpu.index, vcpu.tid, frozenset((pins[vcpu.index],))
        )
        for vcpu in domain.vcpus
        if vcpu.index in pins
    ]

# SPDX-License-Identifier: Apache-2.0

"""Filters of nova-scheduler::

    [filter_scheduler]
    available_filters = nova.scheduler.filters.all_filters
    available_filters = nova_filters.filters.all_filters
    enabled_filters = ...,VschedReservationFilter,
        VschedAllocationErrorFilter,VschedIoOverheadFilter

A flavor without extra specs of vsched passes them all. Refused hosts are
logged at level INFO, one line for each filter and instance; the line begins
with ``vsched:``.
"""

from collections.abc import Iterable
import time
import typing as ty

from nova.conf import CONF
from nova.scheduler import filters
from nova.scheduler import utils
from oslo_log import log as logging

from nova_filters import flavor_request
from nova_filters import hosts
from nova_filters import judging
from nova_filters import process
from vsched_lib.model import fit

LOG = logging.getLogger(__name__)


class _Filter(filters.BaseHostFilter):
    """A filter of all hosts of a request.

    :cvar name: prefix of its options in ``[vsched]``.
    """

    # A rebuild stays where it is, with what it has.
    RUN_ON_REBUILD = False

    name: ty.ClassVar[str]

    @staticmethod
    def judge(
        request: flavor_request.FlavorRequest, host: hosts.Host, state: ty.Any
    ) -> fit.Problem | None:
        """Return why one host is refused, or None."""
        raise NotImplementedError

    def filter_all(
        self, filter_obj_list: Iterable[ty.Any], spec_obj: ty.Any
    ) -> Iterable[ty.Any]:
        """Return the hosts that pass.

        What does not depend on the host is done once.
        """
        if utils.request_is_rebuild(spec_obj):
            return filter_obj_list
        try:
            request = flavor_request.parse(
                spec_obj.flavor.extra_specs, spec_obj.flavor.vcpus
            )
        except flavor_request.InvalidRequest as problem:
            LOG.warning(
                "vsched: instance %s: %s refused all hosts: the flavor's "
                'extra specs: %s',
                spec_obj.instance_uuid,
                type(self).__name__,
                problem,
            )
            return []
        if request is None:
            return filter_obj_list
        options = CONF.vsched
        known = process.shared().known()
        stale = known.stale(time.monotonic(), options.max_age)
        passed, refusals = judging.filter_hosts(
            filter_obj_list,
            request,
            known,
            stale,
            judging.Rules(
                self.judge,
                options[self.name + '_stale'] == 'pass',
                options[self.name + '_missing'] == 'pass',
            ),
        )
        if stale and passed:
            LOG.info(
                'vsched: instance %s: %s passes all %d hosts: the service was '
                'not reached for %g s',
                spec_obj.instance_uuid,
                type(self).__name__,
                len(passed),
                options.max_age,
            )
        if refusals.count:
            LOG.info(
                'vsched: instance %s: %s refused %d of %d hosts: %s',
                spec_obj.instance_uuid,
                type(self).__name__,
                refusals.count,
                refusals.count + len(passed),
                refusals,
            )
        return passed

    def host_passes(self, host_state: ty.Any, spec_obj: ty.Any) -> bool:
        """Return whether one host passes."""
        return bool(list(self.filter_all([host_state], spec_obj)))


class VschedReservationFilter(_Filter):
    """Passes hosts that support the reservation and have the capacity."""

    name = 'reservation'
    judge = staticmethod(judging.reservation)


class VschedAllocationErrorFilter(_Filter):
    """Passes hosts whose certificates keep the flavor's bound on errors."""

    name = 'allocation_error'
    judge = staticmethod(judging.allocation_error)


class VschedIoOverheadFilter(_Filter):
    """Passes hosts whose cost of the flavor's I/O is within its limit."""

    name = 'io_overhead'
    judge = staticmethod(judging.io_overhead)


def all_filters() -> list[type[_Filter]]:
    """Return all of them, for ``available_filters``."""
    return [
        VschedReservationFilter,
        VschedAllocationErrorFilter,
        VschedIoOverheadFilter,
    ]

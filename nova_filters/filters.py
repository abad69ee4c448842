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

"""Filters of nova-scheduler::

    [filter_scheduler]
    available_filters = nova.scheduler.filters.all_filters
    available_filters = nova_filters.filters.all_filters
    enabled_filters = ...,VschedReservationFilter,
        VschedAllocationErrorFilter,VschedIoOverheadFilter

A flavor without extra specs of vsched passes them all. What they refuse is
said in the log at level INFO, one line for each filter and instance; the
line begins with ``vsched:``.
"""

from collections.abc import Iterable
import time
import typing as ty

from nova.conf import CONF
from nova.scheduler import filters
from nova.scheduler import utils
from oslo_log import log as logging

from nova_filters import asking
from nova_filters import hosts
from nova_filters import judging
from nova_filters import process
from vsched_lib.model import fit

LOG = logging.getLogger(__name__)


class _Filter(filters.BaseHostFilter):
    """One question for all hosts of a request.

    :cvar name: of its options in ``[vsched]``.
    """

    # A rebuild stays where it is, with what it has.
    RUN_ON_REBUILD = False

    name: ty.ClassVar[str]

    @staticmethod
    def judge(question: asking.Question, host: hosts.Host,
              state: ty.Any) -> fit.Problem | None:
        """What speaks against one host, if anything."""
        raise NotImplementedError

    def filter_all(self, filter_obj_list: Iterable[ty.Any],
                   spec_obj: ty.Any) -> Iterable[ty.Any]:
        """Which hosts pass; what does not depend on them is done once."""
        if utils.request_is_rebuild(spec_obj):
            return filter_obj_list
        try:
            question = asking.question(
                spec_obj.flavor.extra_specs, spec_obj.flavor.vcpus)
        except asking.Nonsense as problem:
            LOG.warning(
                'vsched: instance %s: %s refused all hosts: the flavor\'s '
                'extra specs: %s', spec_obj.instance_uuid,
                type(self).__name__, problem)
            return []
        if question is None:
            return filter_obj_list
        options = CONF.vsched
        known = process.shared().known()
        stale = known.stale(time.monotonic(), options.max_age)
        passed, refusals = judging.sift(
            filter_obj_list, question, known, stale, judging.Rules(
                self.judge,
                options[self.name + '_stale'] == 'pass',
                options[self.name + '_missing'] == 'pass'))
        if stale and passed:
            LOG.info(
                'vsched: instance %s: %s lets all %d hosts pass: nothing was '
                'heard of them for %g s', spec_obj.instance_uuid,
                type(self).__name__, len(passed), options.max_age)
        if refusals.count:
            LOG.info(
                'vsched: instance %s: %s refused %d of %d hosts: %s',
                spec_obj.instance_uuid, type(self).__name__, refusals.count,
                refusals.count + len(passed), refusals)
        return passed

    def host_passes(self, host_state: ty.Any, spec_obj: ty.Any) -> bool:
        """Whether one host passes."""
        return bool(list(self.filter_all([host_state], spec_obj)))


class VschedReservationFilter(_Filter):
    """Hosts that can hold the flavor's reservation and have the room."""

    name = 'reservation'
    judge = staticmethod(judging.reservation)


class VschedAllocationErrorFilter(_Filter):
    """Hosts that have shown the flavor's bound on errors."""

    name = 'allocation_error'
    judge = staticmethod(judging.allocation_error)


class VschedIoOverheadFilter(_Filter):
    """Hosts that do the flavor's I/O for what it can pay."""

    name = 'io_overhead'
    judge = staticmethod(judging.io_overhead)


def all_filters() -> list[type[_Filter]]:
    """All of them, for ``available_filters``."""
    return [VschedReservationFilter, VschedAllocationErrorFilter,
            VschedIoOverheadFilter]

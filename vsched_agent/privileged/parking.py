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

"""The place on which a thread holds no bandwidth; see leaving."""

import errno

from vsched_agent.privileged import syscalls

#: Parameters whose bandwidth the kernel counts as zero: the least runtime
#: it takes, and (runtime << 20) / period is 0.
PARKED = syscalls.Attr(
    syscalls.SCHED_DEADLINE, syscalls.FLAG_RESET_ON_FORK, 0, 0,
    1_024, 1_024, 1_073_741_825)


def park_and_set(tid: int, attr: syscalls.Attr) -> None:
    """Give a thread's bandwidth back, then take it out of the class.

    :param tid: a thread that is not overdrawn.
    :param attr: how it shall be scheduled instead.
    :raises OSError: with the kernel's errno.
    """
    try:
        syscalls.set_attr(tid, PARKED)
    except OSError as failure:
        # EINVAL: kernel.sched_deadline_period_max_us was lowered. EBUSY:
        # the kernel's books are below zero. Leaving comes first.
        if failure.errno not in (errno.EINVAL, errno.EBUSY):
            raise
    syscalls.set_attr(tid, attr)

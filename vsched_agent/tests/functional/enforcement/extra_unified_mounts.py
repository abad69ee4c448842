# SPDX-License-Identifier: Apache-2.0

"""One thread's group of version 2, in the caller's mount namespace.

``python -m ... FOLDER GROUP`` mounts the unified hierarchy once more below
FOLDER, bind-mounts GROUP there as well, and prints as JSON which mount and
which group were chosen before and after, and the quota that the kernel holds
where the hierarchy has the CPU controller.
"""

import json
import os
import subprocess
import sys

from vsched_agent.enforcement import base
from vsched_agent.enforcement import cfs
from vsched_agent.host import cgroup
from vsched_agent.privileged import cgroup as privileged
from vsched_agent.tests import thread_farm
from vsched_lib.model import reservation

#: The name of the unified hierarchy among the controllers.
UNIFIED = ''


def _mount(folder: str, group: str) -> list[str]:
    again, part = (os.path.join(folder, name) for name in ('again', 'part'))
    for path in (again, part):
        os.mkdir(path)
    subprocess.run(('mount', '-t', 'cgroup2', 'none', again), check=True)
    subprocess.run(('mount', '--bind', group, part), check=True)
    return [again, part]


def main() -> None:
    """Do it."""
    folder, name = sys.argv[1:]
    before = cgroup.Cgroups().mount(UNIFIED)
    assert before is not None
    group = os.path.join(before.point, name)
    mounts = _mount(folder, group)
    farm = thread_farm.ThreadFarm()
    try:
        (tid,) = farm.add(1)
        # The process, whose threads may not be in groups of their own.
        with open(os.path.join(group, 'cgroup.procs'), 'w') as processes:
            processes.write(str(tid))
        groups = cgroup.Cgroups()
        mount, place = groups.mount(UNIFIED), groups.place(tid, UNIFIED)
        quota = None
        if os.path.exists(os.path.join(group, 'cpu.max')):
            cfs.CfsBackend(groups).apply_each(
                [(base.Target(0, tid), reservation.Reservation(6_000, 20_000))]
            )
            quota = cgroup.read_text(os.path.join(group, 'cpu.max'))
        print(
            json.dumps(
                {
                    'mount': mount and mount.point,
                    'before': before.point,
                    'place': place and place.path,
                    # Each of them shows a hierarchy indeed.
                    'visible': [
                        os.path.exists(os.path.join(one, 'cgroup.procs'))
                        for one in mounts
                    ],
                    'quota': quota,
                }
            )
        )
    finally:
        farm.close()
        privileged.cgroup_pctxt.stop()


if __name__ == '__main__':
    main()

# SPDX-License-Identifier: Apache-2.0

"""Quota, pinning and repair of one thread, in the caller's mount namespace.

``python -m ... FOLDER GROUP`` mounts control groups of version 1 again and
again below FOLDER, bind-mounts GROUP as well, and prints as JSON what the
backends then chose and what the kernel holds.
"""

import json
import os
import subprocess
import sys

from vsched_agent.enforcement import affinity
from vsched_agent.enforcement import base
from vsched_agent.enforcement import cfs
from vsched_agent.enforcement import leak_repair
from vsched_agent.host import cgroup
from vsched_agent.privileged import cgroup as privileged
from vsched_agent.tests import thread_farm
from vsched_lib.model import reservation


def _mount(folder: str, places: dict[str, str]) -> None:
    for number, (controller, group) in enumerate(places.items()):
        again = os.path.join(folder, 'again%d' % number)
        part = os.path.join(folder, 'part%d' % number)
        os.mkdir(again)
        os.mkdir(part)
        subprocess.run(
            ('mount', '-t', 'cgroup', '-o', controller, 'none', again),
            check=True,
        )
        subprocess.run(('mount', '--bind', group, part), check=True)


def main() -> None:
    """Do it."""
    folder, name = sys.argv[1:]
    before = cgroup.Cgroups()
    places = {}
    for controller in ('cpu', 'cpuset'):
        mount = before.mount(controller)
        assert mount is not None
        places[controller] = os.path.join(mount.point, name)
    _mount(folder, places)
    farm = thread_farm.ThreadFarm()
    try:
        (tid,) = farm.add(1)
        for place in places.values():
            with open(os.path.join(place, 'tasks'), 'w') as tasks:
                tasks.write(str(tid))
        groups = cgroup.Cgroups()
        cpu = groups.place(tid, 'cpu')
        target = base.Target(0, tid, frozenset((0,)))
        cfs.CfsBackend(groups).apply_each(
            [(target, reservation.Reservation(6_000, 20_000))]
        )
        # Wide and narrow again, by the control file of its own group.
        with affinity.Affinity(groups).widened([target]):
            wide = sorted(os.sched_getaffinity(tid))
        print(
            json.dumps(
                {
                    'place': cpu and cpu.path,
                    'quota': cgroup.read_text(
                        os.path.join(places['cpu'], 'cpu.cfs_quota_us')
                    ),
                    'wide': wide,
                    'narrow': sorted(os.sched_getaffinity(tid)),
                    'switch': leak_repair.check(groups),
                }
            )
        )
    finally:
        farm.close()
        privileged.cgroup_pctxt.stop()


if __name__ == '__main__':
    main()

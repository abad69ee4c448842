# SPDX-License-Identifier: Apache-2.0

"""Finds vhost workers, the threads that move an instance's packets.

Since Linux 6.4 they are tasks of the process that opened vhost. Before, and
since 6.17 if configured (``fork_from_owner_default``), they are kernel
threads (:mod:`vsched_agent.accounting.kernel_threads`). In both
cases the name is ``vhost-N``, N being the thread that opened vhost.
"""

import contextlib
import os
import re

_NAME = re.compile(r'vhost-(\d+)\Z')
#: The targets of a process's links to open vhost devices begin so.
_DEVICES = '/dev/vhost-'


def is_worker(comm: str) -> bool:
    """Return whether a thread of that name is a worker."""
    return _NAME.match(comm) is not None


def opened(pid: int, proc: str = '/proc') -> bool:
    """Return whether a process has opened vhost, or may have.

    The open files of other users' processes are visible to root only.
    """
    folder = '%s/%d/fd' % (proc, pid)
    try:
        names = os.listdir(folder)
    except PermissionError:
        return True
    except OSError:
        return False
    for name in names:
        # Files may be closed at any moment.
        with contextlib.suppress(OSError):
            if os.readlink('%s/%s' % (folder, name)).startswith(_DEVICES):
                return True
    return False

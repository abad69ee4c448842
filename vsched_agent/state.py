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

"""The agent's folder: one agent at a time, and the way back.

``vsched-agent restore`` must not race with a running agent, which would
enforce again what was just undone; the lock keeps them apart.
"""

import dataclasses
import fcntl
import os
import threading
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent import enforcer as enforcers
from vsched_agent.hypervisor import base
from vsched_agent import journal as journals

LOG = logging.getLogger(__name__)


#: Between two looks at a lock that another process has.
_LOOK_S = 0.05


class InUse(Exception):
    """Another agent works with this folder."""


@dataclasses.dataclass(frozen=True)
class State:
    """An agent's folder, held by this process."""

    journal: journals.Journal
    _lock: ty.Any

    def close(self) -> None:
        """Let go of it."""
        self.journal.close()
        self._lock.close()


def open_state(path: str, patience_s: float = 0.0) -> State:
    """Take an agent's folder.

    :param path: made if missing.
    :param patience_s: longest wait for another process to let go of it: the
        children of a killed agent outlive it for a moment.
    :raises InUse: when another process has it.
    """
    os.makedirs(path, mode=0o750, exist_ok=True)
    # The lock is the open file's: it ends with its process, however that
    # dies, and is not inherited by what the process starts.
    lock = open(os.path.join(path, 'agent.lock'), 'w', encoding='ascii')
    if not _locked(lock, patience_s):
        lock.close()
        raise InUse(
            'another vsched agent works with %s; stop it first' % path)
    return State(journals.Journal(os.path.join(path, 'agent.sqlite')), lock)


def _locked(lock: ty.TextIO, patience_s: float) -> bool:
    give_up = time.monotonic() + patience_s
    never = threading.Event()
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # A wait for a file lock has no time limit of its own.
            if time.monotonic() >= give_up:
                return False
            never.wait(_LOOK_S)
        else:
            return True


def restore_all(enforcer: enforcers.Enforcer, hypervisor: base.Hypervisor,
                journal: journals.Journal) -> tuple[int, int]:
    """Put back what was found on every running instance.

    :returns: how many instances were put back, and how many that the
        journal remembers are gone.
    :raises base.HypervisorUnavailable: nothing was changed then.
    """
    running = {domain.uuid: domain for domain in hypervisor.domains()}
    touched = {uuid for uuid, _ in journal.touched()}
    for uuid in sorted(touched & running.keys()):
        enforcer.release(running[uuid])
        LOG.info('instance %s is as it was found', uuid)
    for uuid in touched - running.keys():
        enforcer.drop(uuid)
    return len(touched & running.keys()), len(touched - running.keys())

# SPDX-License-Identifier: Apache-2.0

"""The agent's state directory: its lock, and restoring from the journal.

The lock keeps ``vsched-agent restore`` from running beside an agent, which
would enforce again what was just restored.
"""

from collections.abc import Callable
import dataclasses
import errno
import fcntl
from fractions import Fraction
import functools
import glob
import os
import threading
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement import diagnosis
from vsched_agent.host import kernel
from vsched_agent.hypervisor import base
from vsched_agent.reservations import enforcer as enforcers
from vsched_agent.state import schema
from vsched_agent.state import storage
from vsched_agent.state import store as journals

LOG = logging.getLogger(__name__)


#: Time between two attempts to take the lock, in seconds.
_POLL_S = 0.05
#: Free space that the journal's file system should have, in MiB.
LEAST_FREE_MIB = 64


class InUse(Exception):
    """Another agent uses this directory."""


@dataclasses.dataclass(frozen=True)
class State:
    """An agent's state directory, locked by this process."""

    journal: journals.Journal
    _lock: ty.Any

    def close(self) -> None:
        """Close the journal and release the lock."""
        self.journal.close()
        self._lock.close()


def open_state(path: str, patience_s: float = 0.0) -> State:
    """Open and lock an agent's state directory.

    :param path: created if missing.
    :param patience_s: longest wait for another process to release it: the
        children of a killed agent outlive it for a moment.
    :raises InUse: when another process has locked it.
    """
    os.makedirs(path, mode=0o750, exist_ok=True)
    # The lock belongs to the open file: it ends with the process in any
    # case, and child processes do not inherit it.
    lock = _open_lock(os.path.join(path, 'agent.lock'))
    if not _locked(lock, patience_s):
        lock.close()
        raise InUse('another vsched agent uses %s; stop it first' % path)
    try:
        journal = journals.Journal(os.path.join(path, 'agent.sqlite'))
    except BaseException:
        lock.close()
        raise
    forgotten = journal.begin_boot(kernel.boot_id())
    if forgotten:
        LOG.info(
            'the host has booted: the former state of %d threads is forgotten',
            forgotten,
        )
    return State(journal, lock)


def finding(state_path: str) -> diagnosis.Finding:
    """Return the doctor's finding about the journal."""
    path = os.path.join(state_path, 'agent.sqlite')
    remedy = 'see "The journal" in the guide to the agent'
    try:
        schema.check_version(path)
    except schema.NewerJournal as error:
        return diagnosis.Finding(
            diagnosis.Level.PROBLEM, 'journal', str(error), remedy
        )
    folder = state_path
    while not os.path.isdir(folder):
        folder = os.path.dirname(os.path.abspath(folder))
    free = os.statvfs(folder)
    free_mib = free.f_bavail * free.f_frsize >> 20
    if not os.access(folder, os.W_OK):
        return diagnosis.Finding(
            diagnosis.Level.PROBLEM,
            'journal',
            '%s cannot be written: the agent would keep records in memory'
            % folder,
            remedy,
        )
    if free_mib < LEAST_FREE_MIB:
        return diagnosis.Finding(
            diagnosis.Level.PROBLEM,
            'journal',
            '%s has %d MiB left, less than %d: when it is full the agent '
            'keeps records in memory' % (folder, free_mib, LEAST_FREE_MIB),
            remedy,
        )
    aside = glob.glob(glob.escape(path) + '.corrupt-*[!mw]')
    if aside:
        return diagnosis.Finding(
            diagnosis.Level.NOTE,
            'journal',
            'a damaged journal was moved aside: %s' % max(aside),
            'check the disk for faults; delete it when it is not needed',
        )
    return diagnosis.Finding(
        diagnosis.Level.OK, 'journal', '%s: %d MiB left' % (folder, free_mib)
    )


def _open_lock(path: str) -> ty.TextIO:
    try:
        return open(path, 'a', encoding='ascii')
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.ENOSPC, errno.EDQUOT):
            raise
        # An open file is sufficient for a lock.
        return open(path, encoding='ascii')


def _locked(lock: ty.TextIO, patience_s: float) -> bool:
    give_up = time.monotonic() + patience_s
    never = threading.Event()
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # A blocking flock has no time limit.
            if time.monotonic() >= give_up:
                return False
            never.wait(_POLL_S)
        else:
            return True


class Restored(ty.NamedTuple):
    """The result of restoring all instances.

    :param restored: number of instances that are restored.
    :param gone: number of instances with a record that no longer run.
    :param problems: one sentence for each instance that is not restored.
    """

    restored: int
    gone: int
    problems: tuple[str, ...] = ()


def restore_all(
    enforcer: enforcers.Enforcer,
    hypervisor: base.Hypervisor,
    journal: journals.Journal,
    on_unfit: Callable[
        [base.Domain, enforcement.NotRestored], None
    ] = lambda domain, error: None,
) -> Restored:
    """Restore the prior state of every running instance.

    A failure does not affect the other instances. When the journal was
    lost, what the kernel has in force is reset to its defaults. Where not
    everything fits any more, the smallest changes are restored.

    :param on_unfit: called with each instance whose prior state does not fit.
    :raises base.HypervisorUnavailable: nothing was changed then.
    """
    running = {domain.uuid: domain for domain in hypervisor.domains()}
    problems: list[str] = []

    def attempt(uuid: str, step: Callable[[], object]) -> bool:
        try:
            step()
        except enforcement.NotRestored as error:
            on_unfit(running[uuid], error)
            problems.append('instance %s is not restored: %s' % (uuid, error))
            return False
        except Exception as error:
            LOG.exception('restoring instance %s failed', uuid)
            problems.append(
                'restoring instance %s failed: %s' % (uuid, ascii(error)[:300])
            )
            return False
        return True

    for notice in journal.notices():
        LOG.warning('%s', notice.detail)
    loss = journal.loss()
    if loss is not storage.Loss.NOTHING:
        damaged = loss is storage.Loss.DAMAGED
        for uuid, domain in running.items():
            attempt(
                uuid, functools.partial(enforcer.take_over, domain, damaged)
            )
        journal.accept_loss()
    touched = {uuid for uuid, _ in journal.touched()}
    restored = 0
    growths = {
        uuid: _growth(enforcer, running[uuid])
        for uuid in sorted(touched & running.keys())
    }
    for uuid in sorted(growths, key=growths.__getitem__):
        if attempt(uuid, functools.partial(enforcer.release, running[uuid])):
            LOG.info('instance %s is restored', uuid)
            restored += 1
    for uuid in sorted(touched - running.keys()):
        attempt(uuid, functools.partial(enforcer.drop, uuid))
    return Restored(restored, len(touched - running.keys()), tuple(problems))


def _growth(enforcer: enforcers.Enforcer, domain: base.Domain) -> Fraction:
    try:
        return enforcer.restore_growth(domain)
    except Exception as error:
        # Restoring it reports the cause.
        LOG.debug('instance %s: %s', domain.uuid, error)
        return Fraction(0)

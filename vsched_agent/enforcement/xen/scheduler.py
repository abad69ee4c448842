# SPDX-License-Identifier: Apache-2.0

"""What Xen's scheduler has of each vCPU or domain.

It is read at most a few times a second.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import errno
import functools
import threading
import time
import typing as ty

from oslo_privsep import daemon

from vsched_agent.privileged import xen
from vsched_lib.model import credit
from vsched_lib.model import rtds

#: How long parameters are cached, in seconds: reading them takes a process.
#: The agent's passes are not more frequent.
AGE_S = 0.5
#: Likewise of what changes with a boot of the host, or of its CPUs.
INFO_AGE_S = 30.0
#: The schedulers with parameters of domains.
CREDIT = ('credit2', 'credit')
#: A toolstack that took longer before it failed is not asked again for a
#: while: each instance of a pass would wait for it.
SLOW_S = 1.0
PAUSE_S = 10.0

P = ty.ParamSpec('P')
R = ty.TypeVar('R')

#: A domain and the index of a vCPU.
Key = tuple[int, int]


class SchedulerUnavailable(Exception):
    """The hypervisor cannot be asked now; the message has the reason."""


class Scheduler:
    """The hypervisor's scheduler, as its toolstack reports it. Thread-safe.

    :param clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._info: tuple[float, Mapping[str, str]] | None = None
        self._found: tuple[float, int, Mapping[Key, rtds.Parameters]] | None
        self._found = None
        self._domains: (
            tuple[float, int, Mapping[int, credit.Parameters]] | None
        )
        self._domains = None
        self._paused: tuple[float, str] | None = None

    def info(self) -> Mapping[str, str]:
        """Return what ``xl info`` reports, as far as it is of interest.

        :raises SchedulerUnavailable: when it does not answer.
        """
        with self._lock:
            now = self._clock()
            if self._info is None or now - self._info[0] >= INFO_AGE_S:
                self._info = now, self._read(xen.info)
            return self._info[1]

    @property
    def name(self) -> str:
        """Return the name of the scheduler that runs."""
        return self.info().get('xen_scheduler', 'unknown')

    @property
    def cpus(self) -> int:
        """Return the host's CPUs, of which the first domain sees its own."""
        text = self.info().get('nr_cpus', '')
        return int(text) if text.isdecimal() and int(text) else 1

    @property
    def pools(self) -> int:
        """Return the number of CPU pools that the running one schedules."""
        if self.name in CREDIT:
            self.domains()
            with self._lock:
                return 0 if self._domains is None else self._domains[1]
        self.parameters()
        with self._lock:
            return 0 if self._found is None else self._found[1]

    def parameters(
        self, newest: bool = False
    ) -> Mapping[Key, rtds.Parameters]:
        """Return the parameters of every vCPU that RTDS schedules.

        :param newest: whether what was read just before is too old.
        :raises SchedulerUnavailable: when it does not answer.
        """
        with self._lock:
            now = self._clock()
            if newest or self._found is None or now - self._found[0] >= AGE_S:
                self._found = None
                read = self._read(xen.rtds_parameters)
                self._found = (
                    now,
                    int(read['pools']),
                    {
                        (domid, index): rtds.Parameters(*values)
                        for domid, index, *values in read['vcpus']
                    },
                )
            return self._found[2]

    def domains(self, newest: bool = False) -> Mapping[int, credit.Parameters]:
        """Return the parameters of every domain, with credit2 and credit.

        :param newest: see :meth:`parameters`.
        :returns: by Xen's number of the domain; empty with other schedulers.
        :raises SchedulerUnavailable: when it does not answer.
        """
        name = self.name
        if name not in CREDIT:
            return {}
        with self._lock:
            now = self._clock()
            if (
                newest
                or self._domains is None
                or now - self._domains[0] >= AGE_S
            ):
                self._domains = None
                read = self._read(
                    functools.partial(xen.credit_parameters, name)
                )
                self._domains = (
                    now,
                    int(read['pools']),
                    {
                        domid: credit.Parameters(weight, cap)
                        for domid, weight, cap in read['domains']
                    },
                )
            return self._domains[2]

    def _read(self, function: Callable[[], R]) -> R:
        """Ask the toolstack, unless it has just been slow to fail.

        :raises SchedulerUnavailable: when it does not answer.
        """
        began = self._clock()
        if self._paused is not None and began < self._paused[0]:
            raise SchedulerUnavailable(self._paused[1])
        self._paused = None
        try:
            return _ask(function)
        except SchedulerUnavailable as failure:
            now = self._clock()
            if now - began >= SLOW_S:
                self._paused = now + PAUSE_S, str(failure)
            raise

    def set(
        self, domid: int, values: Sequence[tuple[int, rtds.Parameters]]
    ) -> str:
        """Set the parameters of vCPUs of one domain.

        :returns: empty on success, else the reason; some may be set then.
            Nothing is when the budgets of all vCPUs would exceed the CPUs.
        :raises SchedulerUnavailable: when it does not answer.
        """
        try:
            return str(
                _ask(
                    _set,
                    domid,
                    [
                        (index, one.period_us, one.budget_us, one.extratime)
                        for index, one in values
                    ],
                )
            )
        finally:
            with self._lock:
                self._found = None

    def set_domain(self, domid: int, values: credit.Parameters) -> str:
        """Set the parameters of a domain, with credit2 and credit.

        :returns: empty on success, else the reason. Nothing is set when the
            weights of all domains would exceed the CPUs.
        :raises SchedulerUnavailable: when it does not answer.
        """
        name = self.name
        try:
            return str(
                _ask(
                    _refusal_of,
                    functools.partial(
                        xen.set_credit, name, domid, values.weight, values.cap
                    ),
                )
            )
        finally:
            with self._lock:
                self._domains = None


def _set(domid: int, values: Sequence[xen.VcpuValues]) -> str:
    return _refusal_of(functools.partial(xen.set_rtds, domid, values))


def _refusal_of(command: Callable[[], str]) -> str:
    """Return why a command has failed, also when it was not started."""
    try:
        return str(command())
    except OSError as failure:
        if failure.errno != errno.EBUSY:
            raise
        return str(failure.strerror)


def _ask(function: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    try:
        return function(*arguments, **named)
    except (OSError, ValueError, daemon.FailedToDropPrivileges) as failure:
        raise SchedulerUnavailable(str(failure)) from failure

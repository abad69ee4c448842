# SPDX-License-Identifier: Apache-2.0

"""Repeats the doctor's checks that only read, for the reports."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import functools
import threading

from oslo_config import cfg
from oslo_log import log as logging

from vsched_agent.conf import hypervisor as hypervisor_conf
from vsched_agent.enforcement import diagnosis
from vsched_agent.enforcement import host_checks
from vsched_agent.host import kernel
from vsched_lib.contract import messages

LOG = logging.getLogger(__name__)

#: How often the checks are repeated, in seconds: operators change sysctls of
#: a running host.
INTERVAL_S = 300.0
#: How long a starting agent waits for the first results, in seconds, so that
#: its first report has them.
FIRST_S = 1.0

Checks = Mapping[str, diagnosis.Check]


def checks_of(
    conf: cfg.ConfigOpts, facts: kernel.KernelFacts
) -> Callable[[], Checks]:
    """Return what makes the checks for this host's kind of hypervisor.

    :param facts: of the kernel, as the agent has read them at its start.
    """
    if hypervisor_conf.is_xen(conf):
        # Imported on hosts of Xen only.
        from vsched_agent.enforcement.xen import doctor as xen_doctor

        return xen_doctor.static_checks
    return functools.partial(host_checks.static_checks_of_agent, facts)


class Findings:
    """The last results of the checks.

    They run on a thread of their own: a read that hangs must not delay
    enforcement.

    :param make: makes the checks; called before each time they run.
    :param interval_s: how often they run.
    """

    def __init__(
        self, make: Callable[[], Checks], interval_s: float = INTERVAL_S
    ) -> None:
        self._make = make
        self._interval_s = interval_s
        self._stopping = threading.Event()
        self._first = threading.Event()
        self._found: tuple[messages.HostFinding, ...] | None = None
        self._failed: frozenset[str] = frozenset()
        self._thread = threading.Thread(
            target=self._run, name='vsched-findings', daemon=True
        )

    def start(self, patience_s: float = FIRST_S) -> None:
        """Start the thread; wait for the first results.

        :param patience_s: the longest time to wait.
        """
        self._thread.start()
        if not self._first.wait(patience_s):
            LOG.warning(
                'the checks of this host take more than %g s; their findings '
                'are reported when they are done',
                patience_s,
            )

    def stop(self) -> None:
        """Run no more checks."""
        self._stopping.set()

    def reported(
        self, more: Iterable[diagnosis.Finding] = ()
    ) -> tuple[messages.HostFinding, ...] | None:
        """Return what is to be reported. Never waits.

        :param more: other findings, which come first.
        :returns: None before the first results.
        """
        found = self._found
        if found is None:
            return None
        return (*converted(more), *found)[: messages.MAX_FINDINGS]

    def check(self) -> None:
        """Run all checks once."""
        found: list[messages.HostFinding] = []
        failed = set()
        for name, check in self._make().items():
            try:
                found += converted(check())
            except Exception:
                failed.add(name)
                # Once, not every time.
                if name not in self._failed:
                    LOG.exception(
                        'check "%s" of this host failed; it is left out', name
                    )
        self._failed = frozenset(failed)
        self._found = tuple(found)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.check()
            except Exception:
                LOG.exception('the checks of this host failed')
            self._first.set()
            self._stopping.wait(self._interval_s)


def converted(
    findings: Iterable[diagnosis.Finding],
) -> list[messages.HostFinding]:
    """Return those that are reported: not the good ones."""
    return [
        messages.HostFinding(
            messages.FindingLevel(one.level).value,
            one.subject,
            one.text,
            one.remedy,
        )
        for one in findings
        if one.level is not diagnosis.Level.OK
    ]

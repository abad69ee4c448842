# SPDX-License-Identifier: Apache-2.0

"""A fleet as agents report it, at the present time, for the page to show."""

import itertools
import threading
import typing as ty
import uuid

from oslo_config import cfg

from vsched_api.collector import endpoint
from vsched_api.operations import announcements
from vsched_api.operations import jobs
from vsched_api.operations import rollups
from vsched_lib.contract import agent_rpc
from vsched_lib.contract import messages
from vsched_ui.tests import host_reports
from vsched_ui.tests import measurements

#: How far back the usage of the first host goes.
SECONDS = 240
#: For so long hosts that are down have not reported: longer than any test, in
#: which the others may be as silent.
SILENT_S = 7_200


def host_name(number: int) -> str:
    """Return the name of a host, from 1."""
    return 'node-%04d' % number


def instance_uuid(host: int, number: int) -> str:
    """Return the UUID of an instance of a host, from 1."""
    return str(uuid.uuid5(host_reports.NAMESPACE, '%d %d' % (host, number)))


def is_down(host: int) -> bool:
    """Return whether a host, from 1, has not reported for a while."""
    return host % 37 == 0


class Host(agent_rpc.AgentEndpoint):
    """Reports what an agent would, and applies what it is notified of.

    :param collector: gets the reports.
    :param number: of the host, from 1.
    :param instances: how many run there.
    :param now: seconds since the epoch.
    :param hostile: whether an instance has a script for a name.
    """

    def __init__(
        self,
        collector: endpoint.Collector,
        number: int,
        instances: int,
        now: float,
        hostile: bool = True,
    ) -> None:
        #: A report that is stored after its successor would count as repeated.
        self._sending = threading.Lock()
        #: What was fetched is reported before anything newer is fetched.
        self._applying = threading.Lock()
        self.collector = collector
        self._batches = itertools.count(int(now * 1000))
        self._number = number
        self._now = now
        self._overridden: set[str] = set()
        self.name = host_name(number)
        self.instances = [
            instance_uuid(number, one) for one in range(1, instances + 1)
        ]
        self._reports = host_reports.HostReports(
            number, self.name, self.instances, now, hostile
        )

    def send(self, at: float | None = None, **parts: ty.Any) -> None:
        """Send a report; from any thread."""
        with self._sending:
            self.collector.on_report(
                messages.Report(
                    self.name,
                    next(self._batches),
                    self._now if at is None else at,
                    **parts,
                )
            )

    def first(self) -> None:
        """Send the first report, with all that the host lists."""
        self.send(**self._reports.first())

    def alive(self, at: float) -> None:
        """Report a second of usage, as an agent does all the time."""
        self.usage(at, at)

    def usage(self, start: float, end: float) -> None:
        """Report seconds of usage, of the instances and of the host.

        :param start: the end of the first second; so is ``end`` of the last.
        """
        self.send(end, **self._reports.usage(start, end))

    def on_overrides_changed(self, generation: int) -> None:
        """Fetch the overrides, apply them, report."""
        with self._applying:
            self._apply_overrides()

    def _apply_overrides(self) -> None:
        overrides = {
            one.instance_uuid: one
            for one in self.collector.on_overrides(self.name).overrides
        }
        removed = self._overridden - overrides.keys()
        self._overridden = set(overrides)
        self.send(
            reservations=tuple(
                self._reports.reservation(one) for one in removed
            )
            + tuple(
                self._reports.reservation(
                    one.instance_uuid,
                    source=messages.Source.OVERRIDE,
                    generation=one.generation,
                    runtime_us=one.runtime_us,
                    period_us=one.period_us,
                    mode=one.mode,
                    backend=one.backend,
                    enforced_backend=one.backend or 'deadline',
                    enforced_runtime_us=one.runtime_us,
                    enforced_period_us=one.period_us,
                )
                for one in overrides.values()
            )
        )

    def on_jobs_changed(self, generation: int) -> None:
        """Begin what is ordered; cancel what is cancelled."""
        with self._applying:
            self.send(
                jobs=tuple(
                    messages.JobReport(
                        order.uuid, order.attempt, *self._answer(order)
                    )
                    for order in self.collector.on_jobs(self.name).orders
                )
            )

    def _answer(self, order: messages.JobOrder) -> tuple[ty.Any, ...]:
        if order.wanted is messages.JobWanted.CANCEL:
            return messages.JobState.CANCELLED, 250_000, self._now, 'as asked'
        return messages.JobState.RUNNING, 420_000, self._now, '5 of 12 points'

    def measured_once(self) -> None:
        """Report profiles of a host that is measured, and little else."""
        parts = measurements.parts(self._number, self.name, self._now)
        if parts:
            self.send(**parts)

    def measured(self) -> None:
        """Report profiles, balloons and events, as a host in use has them."""
        self.send(**self._reports.in_use())


def _order(host: Host, now: float) -> None:
    """Have a host finish a job."""
    job = jobs.create(
        host.collector.database,
        announcements.Announcer(),
        host.name,
        messages.JobKind.PROFILE_OVERHEAD,
        {},
        now - 7_300,
    )
    host.send(
        jobs=(
            messages.JobReport(
                job.uuid,
                1,
                messages.JobState.DONE,
                1_000_000,
                now - 6_900,
                'overhead profile 1',
            ),
        )
    )


def seed(
    conf: cfg.ConfigOpts,
    collector: endpoint.Collector,
    hosts: int,
    instances: int,
    now: float,
    seconds: int = SECONDS,
    hostile: bool = True,
) -> list[Host]:
    """Fill a database with a fleet.

    The first host is measured and has usage by second; the others have a
    minute of it, and the next three have profiles. Each 37th host has not
    reported for :data:`SILENT_S`.

    :param conf: of the collector.
    :param collector: with a clock of ``now``.
    :param hosts: how many.
    :param instances: how many on each.
    :param now: seconds since the epoch.
    :param seconds: how much usage the first host has.
    :param hostile: whether an instance of the first host has a script for
        a name.
    """
    found = []
    earlier = now - SILENT_S
    late = endpoint.Collector(conf, now=lambda: earlier)
    try:
        for number in range(1, hosts + 1):
            down = is_down(number)
            host = (
                Host(late, number, instances, earlier)
                if down
                else Host(collector, number, instances, now, hostile)
            )
            host.first()
            if number == 1:
                host.usage(now - seconds, now - 1)
                host.measured()
            elif not down:
                host.usage(now - 70, now - 65)
                host.measured_once()
            if number == measurements.WITHDRAWN:
                _order(host, now)
            found.append(host)
    finally:
        late.database.dispose()
    rollups.fold(collector.database, conf.collector.usage_fold_chunk_rows)
    return found

# SPDX-License-Identifier: Apache-2.0

"""The whole agent on this host's kernel and libvirt, with a bus in memory.

Nothing of the agent is replaced; only the other end of the bus is played by
a collector that remembers what it was told.
"""

from collections.abc import Callable
from collections.abc import Iterator
import dataclasses
import os
import sys
import threading
import time
import typing as ty
import uuid as uuids

import fixtures
from oslo_config import cfg

from vsched_agent import conf as agent_conf
from vsched_agent import service
from vsched_lib.contract import agent_rpc
from vsched_lib.contract import collector_replies
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import messages
from vsched_lib.contract import rpc

#: Longest wait for something that has to happen, in seconds. Far above what
#: it takes, so that a busy machine fails no test. An emulated one needs more.
PATIENCE_S = float(os.environ.get('VSCHED_TEST_PATIENCE_S', '120'))

#: Codes of events on I/O threads and on what is divided with them; and of a
#: connection to libvirt, which a machine that stands still may lose.
_OTHER_EVENTS = (
    'vsched.io.',
    'vsched.communication.',
    'vsched.period.',
    'vsched.hypervisor.',
)

T = ty.TypeVar('T')


class Collector(collector_rpc.CollectorEndpoint):
    """Remembers every report and hands out the overrides it was given."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self.reports: list[messages.Report] = []
        self._overrides = collector_replies.Overrides(0)

    def on_report(
        self, report: messages.Report
    ) -> collector_replies.ReportReply:
        with self._news:
            # An agent that lost its journal begins to count again.
            duplicate = any(
                one.epoch == report.epoch and one.batch >= report.batch
                for one in self.reports
            )
            if not duplicate:
                self.reports.append(report)
            self._news.notify_all()
            return collector_replies.ReportReply(
                duplicate, self._overrides.generation
            )

    def on_overrides(self, host: str) -> collector_replies.Overrides:
        with self._news:
            return self._overrides

    def on_jobs(self, host: str) -> messages.Jobs:
        return messages.Jobs(0)

    def override(
        self, uuid: str, wanted: collector_replies.Override | None
    ) -> int:
        """Set, or with None end, the override of one instance.

        :returns: the generation that says so.
        """
        with self._news:
            generation = self._overrides.generation + 1
            others = tuple(
                one
                for one in self._overrides.overrides
                if one.instance_uuid != uuid
            )
            if wanted is not None:
                others = (*others, wanted)
            self._overrides = collector_replies.Overrides(generation, others)
            return generation

    @property
    def generation(self) -> int:
        """The newest generation."""
        return self._overrides.generation

    def mark(self) -> int:
        """A place in the reports, for ``since``."""
        with self._news:
            return len(self.reports)

    def events(
        self, since: int = 0, uuid: str | None = None, code: str | None = None
    ) -> list[messages.Event]:
        """The events reported, oldest first."""
        with self._news:
            return [
                event
                for report in self.reports[since:]
                for event in report.events
                if uuid in (None, event.instance_uuid)
                and code in (None, event.code)
            ]

    def vcpu_events(
        self, since: int, uuid: str | None = None
    ) -> list[messages.Event]:
        """The events but those that come at any time.

        Whether its I/O threads have reservations too depends on what the
        others need at that moment.
        """
        return [
            event
            for event in self.events(since, uuid)
            if not event.code.startswith(_OTHER_EVENTS)
        ]

    def said(
        self, uuid: str, since: int = 0
    ) -> messages.ReservationReport | None:
        """The last word on one instance's reservation."""
        with self._news:
            for report in reversed(self.reports[since:]):
                for one in report.reservations:
                    if one.instance_uuid == uuid:
                        return one
        return None

    def decided(
        self, uuid: str, since: int = 0
    ) -> messages.ReservationReport | None:
        """The last word on one instance's reservation itself.

        Reports in which only its I/O threads or its granularity have changed
        come at any time, and are no answer to what a test has done.
        """
        before = found = None
        with self._news:
            for number, report in enumerate(self.reports):
                for one in report.reservations:
                    if one.instance_uuid != uuid:
                        continue
                    now = report.epoch, _without_io(one)
                    if number >= since and (
                        found is not None
                        or before is None
                        or (before[0], _without_io(before[1])) != now
                        or before[1] == one
                    ):
                        found = one
                    before = report.epoch, one
        return found

    def await_news(
        self,
        look: Callable[[], T | None],
        what: str,
        patience_s: float = PATIENCE_S,
    ) -> T:
        """Wait until a look at the reports, or at the kernel, finds something.

        :raises AssertionError: when it does not in time.
        """
        found: list[T] = []

        def there() -> bool:
            seen = look()
            if seen is not None and seen is not False:
                found.append(seen)
            return bool(found)

        give_up = time.monotonic() + patience_s
        with self._news:
            while not there():
                if time.monotonic() > give_up:
                    raise AssertionError(
                        '%s did not happen; the last of %d '
                        'reports: %s'
                        % (what, len(self.reports), self.reports[-3:])
                    )
                # Nothing tells of changes of the kernel's.
                self._news.wait(0.2)
        return found[0]


def _without_io(one: messages.ReservationReport) -> messages.ReservationReport:
    return dataclasses.replace(
        one, io=None, communication=None, attested_at=None
    )


class RunningAgent(fixtures.Fixture):
    """An agent with a folder of its own; starts and stops at will.

    :param options: of the group ``agent``; those of others as
        ``GROUP__NAME``.
    """

    def __init__(self, **options: ty.Any) -> None:
        super().__init__()
        self._options = options
        self.host = 'node-' + uuids.uuid4().hex[:8]
        self.collector = Collector()
        self.agent: service.Agent | None = None

    def _setUp(self) -> None:
        folder = self.useFixture(fixtures.TempDir()).path
        self._state_path = os.path.join(folder, 'state')
        self.config_file = os.path.join(folder, 'vsched.conf')
        self.configure()
        self._transport = rpc.get_transport(self.conf)
        self._server = rpc.get_server(
            self._transport, collector_rpc.TOPIC, 'collector', [self.collector]
        )
        self._server.start()
        self.addCleanup(self._server.wait)
        self.addCleanup(self._server.stop)
        # The bus is in this process: only a hang takes longer.
        self._client = agent_rpc.AgentClient(self._transport, 60.0)
        self.addCleanup(self.stop)
        self.start()

    def configure(self, **options: ty.Any) -> None:
        """Write the configuration; the next start reads it.

        :param options: like those given first, and over them.
        """
        with open(self.config_file, 'w', encoding='utf-8') as file:
            file.write('\n'.join(self._lines(options)))
        self.conf = cfg.ConfigOpts()
        agent_conf.register_opts(self.conf)
        self.conf(['--config-file', self.config_file], default_config_dirs=[])

    def _lines(self, options: dict[str, ty.Any]) -> Iterator[str]:
        # Twice as quick as by default, for the tests' sake.
        options = {
            'host': self.host,
            'state_path': self._state_path,
            'interval': 0.5,
            'report_interval': 0.5,
            'full_sync_interval': 3.0,
            # It would take of what two CPUs have to give.
            'enforcement__use_idle_time': False,
            **self._options,
            **options,
        }
        yield '[DEFAULT]'
        yield 'transport_url = fake://'
        yield '[agent]'
        others = {
            name: value for name, value in options.items() if '__' in name
        }
        for name, value in options.items():
            if name not in others:
                yield '%s = %s' % (name, value)
        for name, value in others.items():
            group, _, option = name.partition('__')
            yield '[%s]' % group
            yield '%s = %s' % (option, value)
        yield ''

    @property
    def command(self) -> list[str]:
        """What runs a command on this agent's configuration."""
        return [
            sys.executable,
            '-m',
            'vsched_agent.cmd.agent',
            '--config-file',
            self.config_file,
        ]

    def start(self) -> None:
        """Start, or start again on what an earlier one left behind.

        Returns when the first report is there.
        """
        mark = self.collector.mark()
        agent = service.Agent(self.conf, self._transport)
        agent.start()
        self.agent = agent
        self.collector.await_news(
            lambda: self.collector.mark() > mark, 'the first report'
        )

    def stop(self) -> None:
        """Stop; nothing happens when it does not run."""
        agent, self.agent = self.agent, None
        if agent is not None:
            agent.stop()

    # What an operator does over the API

    def override(
        self,
        uuid: str,
        runtime_us: int,
        period_us: int = 20_000,
        mode: str = 'capped',
        backend: str | None = None,
    ) -> None:
        """Ask for a reservation over what the flavor says."""
        self._tell(
            uuid,
            collector_replies.Override(
                uuid,
                self.collector.generation + 1,
                runtime_us,
                period_us,
                mode,
                backend,
            ),
        )

    def end_override(self, uuid: str) -> None:
        """Let the flavor speak again."""
        self._tell(uuid, None)

    def _tell(
        self, uuid: str, wanted: collector_replies.Override | None
    ) -> None:
        generation = self.collector.override(uuid, wanted)
        if self.agent is not None:
            self._client.overrides_changed(self.host, generation)

    # What came of it

    def await_said(
        self, uuid: str, since: int = 0, **fields: ty.Any
    ) -> messages.ReservationReport:
        """Wait until the last word on an instance says so.

        :param fields: of :class:`messages.ReservationReport`.
        """

        def look() -> messages.ReservationReport | None:
            said = self.collector.decided(uuid, since)
            if said is None or any(
                getattr(said, name) != value for name, value in fields.items()
            ):
                return None
            return said

        return self.collector.await_news(look, '%s of %s' % (fields, uuid))

    def await_event(
        self, code: str, uuid: str | None = None, since: int = 0
    ) -> messages.Event:
        """Wait for the first event of a kind."""
        return self.collector.await_news(
            lambda: next(iter(self.collector.events(since, uuid, code)), None),
            'event %s' % code,
        )

    def await_passes(self, count: int = 2) -> None:
        """Wait until so many passes that began after now are over.

        Each reports what it metered. The first report may stem from a pass
        that was under way.
        """
        mark = self.collector.mark()
        self.collector.await_news(
            lambda: (
                sum(
                    bool(report.usage)
                    for report in self.collector.reports[mark:]
                )
                > count
            ),
            '%d passes' % count,
        )

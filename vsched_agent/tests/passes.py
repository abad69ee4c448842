# SPDX-License-Identifier: Apache-2.0

"""Passes of the agent's loop over made-up instances."""

from vsched_agent.reconciliation import reconciler
from vsched_agent.tests import enforcing_host
from vsched_agent.tests import fakes
from vsched_lib.contract import messages
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE


class Profiles:
    """Tells what the test says."""

    def __init__(self):
        self.new = []
        self.seen = []
        self.judged = None

    def poll(self):
        found, self.new = self.new, []
        return found

    def measured(self, before):
        return []

    def judge(self, now_s):
        found, self.judged = self.judged, None
        return found

    def attested(self, holdings):
        self.seen.append(
            [
                held.asked.runtime_us
                for held in holdings
                if held.asked is not None
            ]
        )


class Costs:
    """Tells what the test says."""

    def __init__(self):
        self.new = []
        self.why = 'not measured'
        self.samples = []

    def poll(self):
        found, self.new = self.new, []
        return found

    def used(self, samples):
        self.samples.append(samples)

    def problem(self):
        return self.why


class TestCase(enforcing_host.EnforcerCase):
    """A reconciler whose thread is the test's."""

    def setUp(self):
        super().setUp()
        self.hypervisor = fakes.FakeHypervisor()
        self.degrade = False
        self.make()

    def make(self, costs=None, communication=None, **settings):
        self.profiles = Profiles()
        self.measurements = fakes.FakeMeasurements()
        self.meter = fakes.FakeMeter()
        #: How often the collector was to be asked for overrides.
        self.asked = []
        self.reconciler = reconciler.Reconciler(
            reconciler.Settings('here', report_interval_s=0, **settings),
            self.hypervisor,
            self.new_enforcer(
                degrade=self.degrade, measurements=self.measurements
            ),
            self.journal,
            self.meter,
            self.host_info,
            self.profiles,
            costs=costs,
            on_lost_overrides=lambda: self.asked.append(1),
            communication=communication,
        )
        self.hypervisor.start(self.reconciler.changed)

    capacity_mcpu = 1800
    leaked_mcpu = 0

    def host_info(self):
        return messages.HostInfo(
            '1',
            '6',
            'b',
            'fake',
            2,
            4000,
            self.capacity_mcpu,
            0,
            0,
            leaked_mcpu=self.leaked_mcpu,
        )

    def run_(self, *domains, due=True):
        """One pass; returns what it reported, merged."""
        for one in domains:
            self.hypervisor.running[one.uuid] = one
            self.reconciler.changed(one.uuid)
        self.reconciler.run_pass(due)
        merged = []
        while (report := self.journal.outbox.oldest()) is not None:
            self.journal.outbox.confirm(report.batch)
            merged.append(report)
        return merged

    def states(self, reports):
        return [
            (one.instance_uuid[-1], one.state)
            for report in reports
            for one in report.reservations
        ]

    def codes(self, reports):
        return [one.code for report in reports for one in report.events]

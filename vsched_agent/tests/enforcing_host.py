# SPDX-License-Identifier: Apache-2.0

"""A host whose enforcer has simulated backends and a journal on disk."""

from fractions import Fraction

from vsched_agent.reservations import enforcer
from vsched_agent.tests import fakes
from vsched_agent.tests import journals
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS


def reserved(runtime_us, backend=None, mode=reservation.Mode.CAPPED):
    return reservation.Reservation(runtime_us, 20_000, mode, backend)


class EnforcerCase(journals.JournalCase):
    """A host with a capacity of 1.8 CPUs."""

    def setUp(self):
        super().setUp()
        self.new_host()

    def new_host(self):
        """Begin with a host on which nothing is in force."""
        self.deadline = fakes.FakeBackend(DEADLINE, Fraction(18, 10))
        self.cfs = fakes.FakeBackend(CFS)
        self.capacity = fakes.FakeCapacity(Fraction(18, 10))

    def new_enforcer(self, backends=None, **options):
        """Return the enforcer of the next agent."""
        known = backends or {DEADLINE: self.deadline, CFS: self.cfs}
        return enforcer.Enforcer(
            known,
            lambda name: known[name].supports(),
            self.capacity,
            self.journal,
            tick_us=4000,
            **options,
        )


class ReservingCase(EnforcerCase):
    """A host whose reservations may fall back to a weaker backend."""

    degrade = False

    def setUp(self):
        super().setUp()
        self.measurements = fakes.FakeMeasurements()
        self.enforcer = self.make()

    def make(self):
        return self.new_enforcer(
            degrade=self.degrade, measurements=self.measurements
        )

# SPDX-License-Identifier: Apache-2.0

"""A host that charges instances for the work of their I/O threads."""

from vsched_agent.accounting import base as readings
from vsched_agent.reservations import io_charging
from vsched_agent.reservations import unclaimed_io
from vsched_agent.tests import enforcing_host
from vsched_agent.tests import fakes
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages
from vsched_lib.model import charging as model
from vsched_lib.model import reservation

Mode = extra_specs.IoCharging
S = 1_000_000


class AutoCase(enforcing_host.EnforcerCase):
    """Instances of one vCPU, whose main thread serves their I/O."""

    def setUp(self):
        super().setUp()
        for module in (unclaimed_io.time, io_charging.time):
            self.patch(module, 'monotonic', lambda: self.now_s)

    def new_host(self):
        super().new_host()
        self.domains = {}
        self.now_s = 100.0
        self.make()

    def prepare(self):
        """Begin with an empty host and an empty journal."""
        self.new_journal()
        self.new_host()

    def make(self, backends=None):
        self.enforcer = self.new_enforcer(backends)
        self.charging = io_charging.Charging(
            io_charging.Settings(model.IoPolicy(window_s=10), tick_us=4000),
            self.enforcer,
        )

    def hold(self, number, runtime_us, mode=Mode.AUTO, backend=None):
        domain = self.domains.setdefault(number, fakes.domain(number))
        charged = self.charging.set_mode(domain, mode)
        self.enforcer.hold(
            domain,
            reservation.Reservation(runtime_us, 20_000, backend=backend),
            charged=charged,
        )

    def second(self, guest=0.3, packets=0, **ran):
        """Run one pass; return the changes by instance.

        :param packets: that each instance receives.
        :param ran: the share of each instance's main thread.
        """
        self.now_s += 1
        samples, threads = [], {}
        for number, domain in self.domains.items():
            share = ran.get('vm%d' % number, 0.0)
            threads[domain.uuid] = readings.Reading(
                domain.uuid,
                0,
                10**9,
                (
                    readings.ThreadUse(
                        domain.pid,
                        readings.Role.EMULATOR,
                        int(share * 1e9),
                        0,
                        1,
                    ),
                ),
                int(share * 1e9),
            )
            samples.append(
                messages.UsageSample(
                    domain.uuid,
                    1.0,
                    S,
                    int(guest * S),
                    0,
                    direct_us=int(share * S),
                    net_rx_packets=packets,
                )
            )
        changes = self.charging.adjust(
            list(self.domains.values()), samples, threads
        )
        return {int(one.uuid[-12:]): one for one in changes}

    def io_us(self, number):
        """What an instance's main thread has in every 20 ms."""
        held = self.deadline.held.get(self.domains[number].pid)
        return held and held.runtime_us

    def guest_us(self, number):
        return self.deadline.held[self.domains[number].pid + 1].runtime_us

    def claimed_mcpu(self):
        return self.enforcer.admitted_mcpu()

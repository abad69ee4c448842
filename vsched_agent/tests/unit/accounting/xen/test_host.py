# SPDX-License-Identifier: Apache-2.0

"""The time of a Xen host, divided."""

import json
import pathlib
import random

import fixtures
import hypothesis
from hypothesis import strategies as st
from oslotest import base as test_base

from vsched_agent.accounting import disk
from vsched_agent.accounting import network
from vsched_agent.accounting import usage
from vsched_agent.accounting.xen import backends
from vsched_agent.accounting.xen import host
from vsched_agent.accounting.xen import reader
from vsched_agent.tests import fake_dom0
from vsched_lib.contract import messages
from vsched_lib.model import overhead

MS = 1_000_000
PRICES_NS = {'net_rx': 2_000.0, 'net_tx': 3_000.0, 'disk_read': 10_000.0}


def sample(guest_us, direct_us=0, **counts):
    return messages.UsageSample(
        'u', 1.0, 1_000_000, guest_us, 0, direct_us=direct_us, **counts
    )


class MeterCase(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.dom0 = self.useFixture(fake_dom0.FakeDom0())
        self.now_ns = 10**12
        self.useFixture(
            fixtures.MockPatchObject(
                host.time, 'monotonic_ns', lambda: self.now_ns
            )
        )
        self.meter = host.FirstDomainMeter(self.dom0, self.dom0.proc)

    def later(self, first_domain_ns, ms=1000):
        self.now_ns += ms * MS
        self.dom0.first_domain_ns += first_domain_ns


class FirstDomainMeterTest(MeterCase):
    def test_the_first_call_only_reads(self):
        self.assertIsNone(self.meter.read())

    def test_divided(self):
        self.meter.read()
        self.meter.prices = host.first_domain.Prices(PRICES_NS)
        self.later(300 * MS)
        samples = [
            sample(900_000, 50_000, net_rx_packets=10, net_tx_packets=20),
            sample(100_000, 0, disk_read_requests=1_000),
        ]
        found = self.meter.account(self.meter.read(), samples)
        self.assertEqual(
            [(50_000, 80), (0, 10_000)],
            [(one.direct_us, one.shared_us) for one in samples],
        )
        self.assertEqual(
            (4, 2_700_000, 0, 0, 1_000_000, 50_000, 10_080, 239_920),
            (
                found.cpus,
                found.idle_us,
                found.steal_us,
                found.irq_us,
                found.guest_us,
                found.direct_us,
                found.shared_us,
                found.own_us,
            ),
        )

    def test_threads_count_for_what_the_first_domain_ran(self):
        self.meter.read()
        self.later(30 * MS)
        samples = [sample(0, 40_000), sample(0, 20_000)]
        found = self.meter.account(self.meter.read(), samples)
        self.assertEqual([20_000, 10_000], [one.direct_us for one in samples])
        self.assertEqual((30_000, 0), (found.direct_us, found.own_us))

    def test_more_than_there_was_is_corrected(self):
        self.meter.read()
        self.later(100 * MS)
        found = self.meter.account(
            self.meter.read(), [sample(1_000_000)] * 3 + [sample(920_000)]
        )
        self.assertEqual(0, found.idle_us)
        self.later(100 * MS)
        found = self.meter.account(self.meter.read(), [sample(880_000)])
        self.assertEqual(3_000_000, found.idle_us)

    def test_parts_of_microseconds_are_not_lost(self):
        self.meter.read()
        seen_us = 0
        for _ in range(10):
            self.later(1_700)
            seen_us += self.meter.read().first_domain_us
        self.assertEqual(17, seen_us)

    def test_processes_in_user_mode(self):
        self.meter.read()
        self.later(500 * MS)
        self.dom0.write_user_ticks(30)
        self.assertEqual(300_000, self.meter.read().processes_us)
        pathlib.Path(self.dom0.proc, 'stat').unlink()
        self.later(500 * MS)
        self.assertEqual(0, self.meter.read().processes_us)
        self.dom0.write_user_ticks(50)
        self.later(500 * MS)
        self.assertEqual(200_000, self.meter.read().processes_us)

    def test_no_answer(self):
        self.meter.read()
        self.dom0.answers = False
        self.later(5 * MS)
        self.assertIsNone(self.meter.read())
        self.dom0.answers = True
        self.later(5 * MS)
        found = self.meter.read()
        self.assertEqual(
            (2_000_000, 10_000), (found.interval_us, found.first_domain_us)
        )

    def test_samples_without_an_answer_count_later(self):
        self.meter.read()
        # Before the first answer nothing of them is in an interval.
        self.meter.missed([sample(900_000, 900_000)])
        self.dom0.answers = False
        for _ in range(2):
            self.later(50 * MS)
            self.assertIsNone(self.meter.read())
            self.meter.missed([sample(200_000, 10_000)])
        stored = json.loads(json.dumps(self.meter.checkpoint()))
        self.meter = host.FirstDomainMeter(self.dom0, self.dom0.proc)
        self.meter.resume(stored)
        self.dom0.answers = True
        self.later(50 * MS)
        samples = [sample(300_000, 15_000)]
        found = self.meter.account(self.meter.read(), samples)
        self.assertEqual(15_000, samples[0].direct_us)
        self.assertEqual(
            (11_150_000, 700_000, 35_000, 115_000),
            (found.idle_us, found.guest_us, found.direct_us, found.own_us),
        )
        self.later(50 * MS)
        found = self.meter.account(self.meter.read(), [])
        self.assertEqual(
            (3_950_000, 0, 0), (found.idle_us, found.guest_us, found.direct_us)
        )

    def test_samples_had_no_more_than_there_was(self):
        self.meter.read()
        self.dom0.answers = False
        self.later(10 * MS)
        self.meter.read()
        self.meter.missed([sample(0, 40_000)])
        self.dom0.answers = True
        self.later(20 * MS)
        samples = [sample(0, 5_000)]
        found = self.meter.account(self.meter.read(), samples)
        self.assertEqual(0, samples[0].direct_us)
        self.assertEqual((30_000, 0), (found.direct_us, found.own_us))

    def test_prices_come_from_whole_intervals(self):
        seen = []
        self.meter.prices.observe = lambda *values: seen.append(values[0])
        self.meter.read()
        self.dom0.answers = False
        self.meter.read()
        self.meter.missed([sample(1_000)])
        self.dom0.answers = True
        for _ in range(2):
            self.later(7 * MS)
            self.meter.account(self.meter.read(), [sample(1_000)])
        self.assertEqual([7_000], seen)

    def test_resume(self):
        self.assertIsNone(self.meter.checkpoint())
        self.meter.resume(None)
        self.meter.read()
        self.meter.prices = host.first_domain.Prices(PRICES_NS)
        stored = json.loads(json.dumps(self.meter.checkpoint()))
        self.later(7 * MS)
        second = host.FirstDomainMeter(self.dom0, self.dom0.proc)
        second.resume(stored)
        self.assertEqual(7_000, second.read().first_domain_us)
        self.assertEqual(PRICES_NS, second.prices.prices_ns)
        for wrong in ({}, {**stored, 'prices_ns': {'net_rx': 'much'}}):
            self.assertRaises(
                (LookupError, TypeError, ValueError), second.resume, wrong
            )


class World:
    """A host whose instances come, work and go.

    :param dom0: its first domain.
    :param chance: what happens.
    """

    def __init__(self, dom0, chance):
        self.dom0 = dom0
        self.chance = chance
        self.now_ns = 10**12
        self.number = 0
        self.domains = {}
        self.run_ns = {}
        self.events = {}
        self.started = {}
        self.reader = reader.DomainReader(dom0, 100, dom0.proc, dom0.sys)
        self.reader._now_ticks = lambda: self.now_ns // 10**7
        divider = host.FirstDomainMeter(dom0, dom0.proc)
        # Some are too high: estimates are bounded by what is left.
        divider.prices = host.first_domain.Prices(
            dict.fromkeys(overhead.EVENTS, chance.choice((5_000.0, 50_000.0)))
        )
        self.meter = usage.UsageMeter(
            self.reader,
            divider,
            network.PacketMeter(dom0.proc),
            disk.RequestMeter(
                disk.BlockingPoller(self.reader.disk_counters), 0
            ),
        )

    def start(self):
        self.number += 1
        domid, uuid = self.number, 'vm%d' % self.number
        self.domains[domid] = fake_dom0.domain(uuid, domid)
        self.dom0.times_ns[uuid] = [0]
        self.run_ns[domid] = 0
        self.events[domid] = [0] * 4
        self.started[domid] = self.now_ns // 10**7

    def end(self):
        domid = self.chance.choice(list(self.domains))
        del self.dom0.times_ns[self.domains.pop(domid).uuid]
        self.dom0.packets.pop(domid, None)
        if self.run_ns[domid]:
            self.dom0.threads.end(1000 + domid)

    def run(self):
        """One second goes by."""
        self.now_ns += 1000 * MS
        self.dom0.first_domain_ns += self.chance.randint(0, 20 * MS)
        for domid, domain in self.domains.items():
            self.dom0.times_ns[domain.uuid][0] += self.chance.randint(
                0, 900 * MS
            )
            ran_ns = self.chance.randint(1, 5 * MS)
            self.run_ns[domid] += ran_ns
            self.dom0.thread(
                1000 + domid,
                'vif%d.0-q0-guest-rx' % domid,
                self.run_ns[domid],
                start_ticks=self.started[domid],
            )
            busy = self.chance.random() < 0.5
            for place in range(4):
                count = self.chance.randint(0, 1000 * busy)
                self.events[domid][place] += count
                self.dom0.first_domain_ns += 10_000 * count
            self.dom0.packets[domid] = tuple(self.events[domid][:2])
            self.dom0.disk(domid, *self.events[domid][2:])
            self.dom0.first_domain_ns += ran_ns
        self.dom0.write_packets()

    def sample(self):
        return self.meter.sample(list(self.domains.values()), {})


class ConservationTest(test_base.BaseTestCase):
    """A whole meter, from files to samples."""

    @hypothesis.settings(deadline=None, max_examples=8)
    @hypothesis.given(st.integers(0, 2**32))
    def test_nothing_is_lost_or_counted_twice(self, seed):
        with fake_dom0.FakeDom0() as dom0:
            world = World(dom0, random.Random(seed))
            with (
                fixtures.MockPatchObject(
                    host.time, 'monotonic_ns', lambda: world.now_ns
                ),
                # Passes follow each other at once, and threads are to be
                # found in the next one.
                fixtures.MockPatchObject(backends, 'RESCAN_INTERVAL_S', 0.0),
            ):
                self.play(world, 25)

    def test_nothing_is_lost_while_the_host_does_not_answer(self):
        dom0 = self.useFixture(fake_dom0.FakeDom0())
        world = World(dom0, random.Random(1))
        for module, name, value in (
            (host.time, 'monotonic_ns', lambda: world.now_ns),
            (backends, 'RESCAN_INTERVAL_S', 0.0),
        ):
            self.useFixture(fixtures.MockPatchObject(module, name, value))
        world.start()
        world.sample()
        before_us = dom0.first_domain_ns // 1000
        world.run()
        with fixtures.MockPatchObject(
            dom0,
            'host_time',
            side_effect=host.base.HypervisorUnavailable('no answer'),
        ):
            (first,) = world.sample()
        self.assertIsNone(world.meter.host)
        self.assertGreater(first.direct_us, 0)
        world.run()
        (second,) = world.sample()
        found = world.meter.host
        self.assertEqual(
            (
                first.guest_us + second.guest_us,
                first.direct_us + second.direct_us,
                dom0.first_domain_ns // 1000 - before_us,
            ),
            (
                found.guest_us,
                found.direct_us,
                found.direct_us + found.shared_us + found.own_us,
            ),
        )
        self.assertEqual(
            found.cpus * found.interval_us,
            found.idle_us
            + found.guest_us
            + found.direct_us
            + found.shared_us
            + found.own_us,
        )
        world.meter.close()

    def play(self, world, passes):
        world.start()
        world.sample()
        last_us = 0
        events = direct_us = shared_us = parts_us = whole_us = 0
        for _ in range(passes):
            if world.chance.random() < 0.3:
                world.start()
            elif world.chance.random() < 0.3 and len(world.domains) > 1:
                world.end()
            world.run()
            samples = world.sample()
            found = world.meter.host
            now_us = world.dom0.first_domain_ns // 1000
            self.assertEqual(
                now_us - last_us,
                found.direct_us + found.shared_us + found.own_us,
            )
            last_us = now_us
            parts = (
                found.guest_us,
                found.direct_us,
                found.shared_us,
                found.own_us,
                found.idle_us,
            )
            self.assertGreaterEqual(min(parts), 0)
            parts_us += sum(parts)
            whole_us += found.cpus * found.interval_us
            self.assertEqual(
                parts[:3],
                tuple(
                    sum(getattr(one, name) for one in samples)
                    for name in ('guest_us', 'direct_us', 'shared_us')
                ),
            )
            for one in samples:
                self.assertIsNone(one.executions)
                events += one.net_rx_packets + one.disk_read_requests
            direct_us += found.direct_us
            shared_us += found.shared_us
        self.assertGreater(events, 0)
        self.assertGreater(direct_us, 0)
        self.assertGreater(shared_us, 0)
        # More domains than CPUs may run more than there is, here.
        self.assertGreaterEqual(parts_us, whole_us)
        world.meter.close()
        self.assertEqual(0, world.reader.files.open)

# SPDX-License-Identifier: Apache-2.0

"""Every CPU second is accounted once.

A made-up host runs instances whose processes and threads start and end, get
numbers that others had, and leave for another host; agents come and go, and
clocks are read one after the other. What the accounts say is compared with
what really ran.
"""

import dataclasses
import random
import typing as ty

import fixtures
import hypothesis
from hypothesis import strategies
from oslotest import base as test_base

from vsched_agent.accounting import direct
from vsched_agent.accounting import host
from vsched_agent.accounting import kernel_threads
from vsched_agent.accounting import network as packets
from vsched_agent.accounting import qemu
from vsched_agent.accounting import usage
from vsched_agent.hypervisor import base
from vsched_agent.tests import fake_proc

CPUS = 4
TICK_NS = 10_000_000
#: Counters near their end, which wrap while a test runs.
NEAR_WRAP_NS = 2**64 - 3 * 10**9
#: What a process's clock may be behind its threads' counters.
STALE_NS = 4_000_000


@dataclasses.dataclass
class Thread:
    pid: int
    tid: int
    comm: str
    start_ticks: int
    parent: int = 1
    run_ns: int = 0
    wait_ns: int = 0
    slices: int = 0
    base_ns: int = 0


@dataclasses.dataclass
class Machine:
    """An instance as it is, and what was accounted to it.

    :param ran_ns: by its process's threads since an agent first saw it.
    :param helped_ns: by the kernel's threads for it; one that is not looked
        for at once counts from when it is found.
    """

    uuid: str
    pid: int
    threads: dict[int, ty.Any]
    workers: dict[int, ty.Any]
    clock_ns: int = 0
    packets: int = 0
    seen: bool = False
    ran_ns: int = 0
    helped_ns: int = 0
    reported_us: int = 0
    domain: base.Domain | None = None


class World:
    """The host, its clock and its procfs."""

    def __init__(self, proc, chance):
        self.proc = proc
        self.chance = chance
        self.now_ticks = 1000
        self.next_pid = 100
        self.free_pids = []
        self.machines = []
        self.gone = []
        self.idle_ticks = self.steal_ticks = 0
        self.numbers = 0
        self.write()

    def write(self):
        (self.proc.path / 'stat').write_text(
            'cpu 0\n'
            + ''.join(
                'cpu%d 0 0 0 %d 0 0 0 %d 0 0\n'
                % (
                    cpu,
                    self.idle_ticks if cpu == 0 else 0,
                    self.steal_ticks if cpu == 0 else 0,
                )
                for cpu in range(CPUS)
            )
        )
        (self.proc.path / 'net').mkdir(exist_ok=True)
        (self.proc.path / 'net' / 'dev').write_text(
            ''.join(
                'tap%s: 0 0 0 0 0 0 0 0 0 %d 0 0 0 0 0 0\n'
                % (one.uuid, one.packets)
                for one in self.machines
            )
        )

    def number(self, reuse=True):
        if reuse and self.free_pids and self.chance.random() < 0.7:
            return self.free_pids.pop()
        self.next_pid += 1
        return self.next_pid

    def thread(self, pid, tid, comm, **more):
        one = Thread(pid, tid, comm, self.now_ticks, **more)
        if self.chance.random() < 0.2:
            one.base_ns = NEAR_WRAP_NS
        self.show(one)
        return one

    def show(self, one):
        # A counter that did not begin at 0 belongs to a thread that is met
        # for the first time; from then on only the difference counts.
        self.proc.set(
            one.pid,
            one.tid,
            (one.base_ns + one.run_ns) % 2**64,
            one.wait_ns,
            one.slices,
            start_ticks=one.start_ticks,
            comm=one.comm,
            parent=one.parent,
        )

    def start(self, uuid=None):
        pid = self.number()
        self.numbers += 1
        machine = Machine(uuid or 'vm%d' % self.numbers, pid, {}, {})
        for tid, comm in (
            (pid, 'qemu'),
            (self.number(), 'CPU 0/KVM'),
            (self.number(), 'CPU 1/KVM'),
            (self.number(), 'IO iothread1'),
        ):
            machine.threads[tid] = self.thread(pid, tid, comm)
        # Its threads are as young as it is.
        for one in machine.threads.values():
            one.base_ns = 0
            self.show(one)
        if self.chance.random() < 0.3:
            self.proc.open_device(pid, 9, '/dev/vhost-net')
            tid = self.number()
            machine.workers[tid] = self.thread(
                tid, tid, 'vhost-%d' % pid, parent=2
            )
            machine.workers[tid].base_ns = 0
            self.show(machine.workers[tid])
        self.define(machine)
        self.machines.append(machine)

    def define(self, machine):
        machine.domain = base.Domain(
            machine.uuid,
            machine.uuid,
            machine.pid,
            tuple(
                base.Vcpu(index, one.tid)
                for index, one in enumerate(
                    one
                    for one in machine.threads.values()
                    if one.comm.startswith('CPU')
                )
            ),
            interfaces=(base.Interface('tap' + machine.uuid),),
        )

    def stop(self, machine):
        self.machines.remove(machine)
        self.proc.end(machine.pid)
        self.free_pids += machine.threads
        for tid in machine.workers:
            self.proc.end(tid)
        self.gone.append(machine)

    def birth(self, machine):
        tid = self.number()
        one = self.thread(machine.pid, tid, 'worker')
        one.base_ns = 0
        self.show(one)
        machine.threads[tid] = one

    def death(self, machine):
        workers = [
            one for one in machine.threads.values() if one.comm == 'worker'
        ]
        if workers:
            one = self.chance.choice(workers)
            del machine.threads[one.tid]
            self.proc.end(machine.pid, one.tid)
            self.free_pids.append(one.tid)

    def run(self, ticks):
        """Time goes by; every CPU does one thing in each tick."""
        self.now_ticks += ticks
        everybody = [
            (machine, one)
            for machine in self.machines
            for one in (*machine.threads.values(), *machine.workers.values())
        ]
        for _ in range(ticks):
            busy = self.chance.sample(
                everybody, min(len(everybody), self.chance.randint(0, CPUS))
            )
            for machine, one in busy:
                one.run_ns += TICK_NS
                one.slices += 1
                if one.tid not in machine.workers:
                    machine.clock_ns += TICK_NS
                    machine.ran_ns += TICK_NS * machine.seen
                else:
                    machine.helped_ns += TICK_NS * machine.seen
                machine.packets += self.chance.randint(0, 50)
            left = CPUS - len(busy)
            self.idle_ticks += self.chance.randint(0, left)
            if self.chance.random() < 0.1 and left > 1:
                self.idle_ticks -= 1
                self.steal_ticks += 1
        for _, one in everybody:
            self.show(one)
        self.write()

    def clock(self, pid):
        for machine in self.machines:
            if machine.pid == pid:
                return max(
                    0, machine.clock_ns - self.chance.randint(0, STALE_NS)
                )
        return None


class Agent:
    """One agent from its start to its end, and its samples."""

    def __init__(self, world):
        self.world = world
        self.reader = qemu.ProcessReader(
            world.chance.choice((0, 3, 1000)),
            str(world.proc.path),
            direct.DirectMeter(world.clock),
        )
        self.reader._now_ticks = lambda: world.now_ticks
        self.meter = usage.UsageMeter(
            self.reader,
            host.HostMeter(str(world.proc.path)),
            packets.PacketMeter(str(world.proc.path)),
        )
        self.host = []
        self.since_ticks = None

    def look(self, late=()):
        """One pass.

        :param late: instances that have ended, of which nobody heard yet.
        """
        here = [*self.world.machines, *late]
        by_uuid = {one.uuid: one for one in here}
        samples = self.meter.sample(
            [one.domain for one in by_uuid.values()], {}
        )
        for sample in samples:
            by_uuid[sample.instance_uuid].reported_us += (
                sample.guest_us + sample.direct_us
            )
        for one in here:
            one.seen = True
        if self.since_ticks is None:
            self.since_ticks = self.world.now_ticks
        elif self.meter.host is not None:
            self.host.append((self.meter.host, samples))

    def end(self):
        self.meter.close()
        for one in self.world.machines:
            one.seen = False
            one.ran_ns = one.helped_ns = one.reported_us = 0


STEPS = strategies.lists(
    strategies.sampled_from(
        (
            'run',
            'run',
            'run',
            'look',
            'look',
            'look',
            'start',
            'stop',
            'restart',
            'birth',
            'death',
            'agent',
            'late',
        )
    ),
    min_size=5,
    max_size=60,
)


class ConservationTest(test_base.BaseTestCase):
    @hypothesis.settings(deadline=None, max_examples=150)
    @hypothesis.given(STEPS, strategies.integers(0, 2**32))
    def test_every_second_is_somebodys(self, steps, seed):
        with fake_proc.FakeProc() as proc:
            world = World(proc, random.Random(seed))
            with (
                fixtures.MockPatchObject(
                    qemu.time,
                    'monotonic_ns',
                    lambda: world.now_ticks * TICK_NS,
                ),
                fixtures.MockPatchObject(
                    kernel_threads.time,
                    'monotonic',
                    lambda: world.now_ticks / 100,
                ),
                fixtures.MockPatchObject(host.os, 'sysconf', lambda name: 100),
            ):
                self.play(world, steps)

    def play(self, world, steps):
        world.start()
        agent = Agent(world)
        agent.look()
        for step in steps:
            some = (
                world.chance.choice(world.machines) if world.machines else None
            )
            if step == 'run':
                world.run(world.chance.randint(1, 120))
            elif step == 'look':
                agent.look()
            elif step == 'start':
                world.start()
            elif step == 'agent':
                self.check(world, agent)
                agent.end()
                agent = Agent(world)
                agent.look()
            elif some is None:
                continue
            elif step == 'stop':
                world.stop(some)
            elif step == 'restart':
                world.stop(some)
                world.start(some.uuid)
                newer = world.machines[-1]
                newer.seen = some.seen
                world.run(1)
            elif step == 'late':
                world.stop(some)
                agent.look([some])
            else:
                getattr(world, step)(some)
        world.run(3)
        agent.look()
        self.check(world, agent)
        agent.end()
        self.assertEqual(0, agent.reader.files.open)

    def check(self, world, agent):
        """The books of one agent balance."""
        agent.look()
        off_us = 0
        for whole, samples in agent.host:
            parts = (
                whole.guest_us,
                whole.direct_us,
                whole.shared_us,
                whole.own_us,
                whole.idle_us,
                whole.steal_us,
            )
            self.assertGreaterEqual(min(parts), 0)
            off_us += sum(parts) - whole.cpus * whole.interval_us
            self.assertEqual(
                (
                    sum(one.guest_us for one in samples),
                    sum(one.direct_us for one in samples),
                    sum(one.shared_us for one in samples),
                ),
                parts[:3],
            )
        # All clocks but those of processes are of one moment here.
        most_us = STALE_NS / 1000 * (len(world.machines) + 2)
        self.assertLessEqual(abs(off_us), most_us + 2 * len(agent.host))
        for machine in world.machines:
            ran_us = machine.ran_ns / 1000
            self.assertLessEqual(
                machine.reported_us,
                ran_us + machine.helped_ns / 1000 + 100 + STALE_NS / 1000,
            )
            self.assertGreaterEqual(
                machine.reported_us, ran_us - 100 - STALE_NS / 1000
            )

# SPDX-License-Identifier: Apache-2.0

"""What the services lose while a part of them is away: nothing.

Scenarios over a real deployment and a real VM. Functional tests run them
short and assert; the benchmark of the same name runs them long and records.
"""

import contextlib
import dataclasses
import datetime
import os
import time
import typing as ty

import fixtures
import requests

from vsched_agent.host import schedstat
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.profiling.guest import vm
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import extra_specs
from vsched_lib.model import reservation
from vsched_standalone.tests import deployment
from vsched_standalone.tests import private_services

PROMISE = reservation.Reservation(12_000, 20_000)
GUEST_DIR = os.environ.get('VSCHED_GUEST_DIR', '/var/cache/vsched/guest')
NEIGHBOURS = 3
#: What two clocks that are read one after the other may differ by.
_CLOCKS_US = 50_000


def require_services(test: ty.Any) -> None:
    """Skip, or fail, a test where what a deployment needs is missing."""
    private_services.require_installed(
        test,
        rabbitmq='/usr/lib/rabbitmq',
        postgresql='/usr/lib/postgresql',
        libvirt=GUEST_DIR,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Samples:
    """What the database holds of one instance over an outage.

    :param stored: samples.
    :param repeated: samples whose interval overlaps the one before.
    :param missing_us: time that no sample covers.
    :param covered_us: time that the samples cover.
    """

    stored: int
    repeated: int
    missing_us: int
    covered_us: int


class Scene(fixtures.Fixture):
    """A deployment on services of its own, a promised VM and neighbours.

    :ivar stolen: of each time for which shares were watched, the CPUs that
        the machine under this one took meanwhile.
    """

    def _setUp(self) -> None:
        self.stolen: list[float] = []
        self.broker = self.useFixture(private_services.Rabbit())
        self.database = self.useFixture(private_services.Postgres())
        folder = self.useFixture(fixtures.TempDir()).path
        # Entered here so that they end after the agent put them back.
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        specs = [self._spec(folder, 'promised', extra_specs.render(PROMISE))]
        specs += [
            self._spec(folder, 'neighbour-%d' % number, {})
            for number in range(NEIGHBOURS)
        ]
        guests = [
            vm.RunningDomain(spec, ready_timeout_s=300) for spec in specs
        ]
        for one in guests:
            stack.callback(one.stop)
        agent_guests.start_in_turn(guests)
        self.uuid = specs[0].uuid
        self.tid = _vcpu_tid(specs[0].name)
        self.services = self.useFixture(
            deployment.Deployment(
                self.broker.transport_url, self.database.connection
            )
        )
        self.services.await_state(
            self.uuid, 'applied', backend='deadline', runtime_us=12_000
        )

    def _spec(
        self, folder: str, name: str, specs: ty.Mapping[str, str]
    ) -> domain_xml.DomainSpec:
        name = 'vsched-test-outage-%s-%d' % (name, os.getpid())
        return domain_xml.DomainSpec(
            name=name,
            kernel=os.path.join(GUEST_DIR, 'vmlinux'),
            initrd=os.path.join(GUEST_DIR, 'initramfs.cpio'),
            cmdline=domain_xml.cmdline('vsched.load=burn'),
            serial_file=os.path.join(folder, name + '.console'),
            extra_specs=specs,
        )

    def shares(self, seconds: float) -> list[float]:
        """What the promised VM got in each second, from the kernel."""
        found = []
        stolen_s, began = agent_guests.stolen_s(), time.monotonic()
        before_ns, since = self._run_ns(), time.monotonic_ns()
        end = began + seconds
        while time.monotonic() < end:
            time.sleep(1)
            now_ns, now = self._run_ns(), time.monotonic_ns()
            found.append((now_ns - before_ns) / (now - since))
            before_ns, since = now_ns, now
        self.stolen.append(
            (agent_guests.stolen_s() - stolen_s) / (time.monotonic() - began)
        )
        return found

    def _run_ns(self) -> int:
        return schedstat.read(self.tid).run_ns

    def samples(self) -> Samples:
        """What the database holds of the promised VM."""
        return samples(self.services, self.uuid)

    def await_samples(self, until: float) -> None:
        """Wait until the database holds what happened until then."""
        give_up = time.monotonic() + 180
        while time.monotonic() < give_up:
            try:
                rows = self.services.usage(self.uuid)
            except requests.HTTPError as error:
                # A database that has just started refuses for a moment.
                if error.response.status_code != 503:
                    raise
                rows = []
            if rows and seconds(rows[-1]['at']) >= until:
                return
            time.sleep(0.5)
        raise RuntimeError(
            'samples until %s did not arrive: %s'
            % (until, self.services.said('agent'))
        )

    def events(self, code: str) -> int:
        """How many events of a code the promised VM has."""
        return len(
            self.services.get(
                '/v1/events', instance_uuid=self.uuid, code=code
            )['events']
        )


def samples(services: deployment.Deployment, uuid: str) -> Samples:
    """What the database holds of one instance."""
    rows = services.usage(uuid)
    repeated = missing_us = 0
    ends = [seconds(row['at']) for row in rows]
    gaps_us = [
        round(
            1e6 * (ends[index] - ends[index - 1]) - rows[index]['interval_us']
        )
        for index in range(1, len(rows))
    ]
    # Wall clock and the agent's steady clock are read one after the other;
    # what differs is that moment, not a lost sample. Where a machine stands
    # still between the two, the next sample differs by as much the other way,
    # and ends later all the same: one that is stored twice does not.
    for index in range(len(gaps_us) - 1):
        gap_us, next_us = gaps_us[index : index + 2]
        if (
            gap_us * next_us < 0
            and abs(gap_us + next_us) <= _CLOCKS_US
            and 1e6 * (ends[index + 2] - ends[index + 1]) > _CLOCKS_US
        ):
            gaps_us[index : index + 2] = 0, gap_us + next_us
    for gap_us in gaps_us:
        if gap_us > _CLOCKS_US:
            missing_us += gap_us
        elif gap_us < -_CLOCKS_US:
            repeated += 1
    return Samples(
        len(rows),
        repeated,
        missing_us,
        sum(row['interval_us'] for row in rows),
    )


def seconds(text: str) -> float:
    """A time of the API, in seconds since the epoch."""
    return datetime.datetime.fromisoformat(text).timestamp()


def _vcpu_tid(name: str) -> int:
    with open('/run/libvirt/qemu/%s.pid' % name, encoding='ascii') as file:
        return vcpu_tid(int(file.read()))


def vcpu_tid(pid: int) -> int:
    """The thread of the first vCPU of a QEMU process.

    :raises RuntimeError: when it has none.
    """
    for tid in os.listdir('/proc/%d/task' % pid):
        with open(
            '/proc/%d/task/%s/comm' % (pid, tid), encoding='ascii'
        ) as file:
            if file.read().startswith('CPU 0/'):
                return int(tid)
    raise RuntimeError('process %d has no vCPU thread' % pid)


def agent_killed(scene: Scene, seconds: float) -> dict[str, ty.Any]:
    """SIGKILL the agent, watch the share, start it again."""
    since = scene.services.reservation(scene.uuid)['since']
    applied = scene.events('vsched.reservation.applied')
    scene.services.kill('agent')
    dead = scene.shares(seconds)
    started = time.time()
    scene.services.start('agent')
    back = scene.shares(seconds)
    scene.await_samples(started + 2)
    seen = scene.services.reservation(scene.uuid)
    return {
        'share_while_dead': _mean(dead),
        'share_after': _mean(back),
        'worst_second': max(abs(one - 0.6) for one in dead + back),
        'applied_again': scene.events('vsched.reservation.applied') - applied,
        'drift_events': scene.events('vsched.drift.repaired'),
        'state': seen['state'],
        'since_kept': seen['since'] == since,
    }


def broker_stopped(scene: Scene, seconds: float) -> dict[str, ty.Any]:
    """Stop the broker for a while under load."""
    scene.broker.stop()
    shares = scene.shares(seconds)
    scene.broker.start()
    back = time.time()
    scene.await_samples(back + 5)
    return {
        'share_while_away': _mean(shares),
        'worst_second': max(abs(one - 0.6) for one in shares),
        'outage_s': seconds,
        'samples': dataclasses.asdict(scene.samples()),
    }


def database_stopped(scene: Scene, seconds: float) -> dict[str, ty.Any]:
    """Stop the database for a while; the API must say so and recover."""
    scene.database.stop()
    reply = scene.services.request('GET', '/v1/reservations')
    error = reply.json()['errors'][0]
    shares = scene.shares(seconds)
    scene.database.start()
    back = time.time()
    scene.await_samples(back + 5)
    return {
        'status': reply.status_code,
        'code': error['code'],
        'retry_after': reply.headers.get('Retry-After'),
        'share_while_away': _mean(shares),
        'outage_s': seconds,
        'status_after': scene.services.request(
            'GET', '/v1/reservations'
        ).status_code,
        'samples': dataclasses.asdict(scene.samples()),
    }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)

# SPDX-License-Identifier: Apache-2.0

"""Kill the parts of a deployment at random, and count what is lost."""

import collections
import contextlib
import dataclasses
import random
import statistics
import time
import typing as ty

import requests

from vsched_agent.host import schedstat
from vsched_agent.privileged import syscalls
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import errors
from vsched_lib.model import reservation
from vsched_standalone.tests import drill_scene
from vsched_standalone.tests import outages

CHANGED, CONSTANT = drill_scene.CHANGED, drill_scene.CONSTANT

#: Between two looks of the sampler at the kernel.
SAMPLE_S = 0.02
#: How long a part may need to come back before the drill gives up.
RECOVER_S = 240.0
_PATCH_S = 3.0
# How long the last change may take once all parts work.
_APPLY_S = 120.0


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """One part was killed.

    :param recovered_s: from the kill until all parts ran, a sample that was
        taken since was read from the API, and the agent had reported that
        it was connected to libvirt again.
    """

    component: str
    at: float
    recovered_s: float


class Sampler(drill_scene.Background):
    """Reads from the kernel what the reserved vCPU threads hold.

    :ivar gap_s: how long the vCPU of the constant reservation was seen
        without it: another class, runtime or period.
    :ivar excess: looks at which the changed reservation's vCPU held neither
        of its two values.
    :ivar shares: what the constant VM got, by second, in CPUs.
    :ivar errors: how far that was from its reservation, by second, without
        what the machine under this one took meanwhile, in CPUs.
    :ivar longest_s: between two looks.
    """

    def __init__(self, scene: drill_scene.Scene) -> None:
        super().__init__()
        self._tid = scene.tids[scene.uuid]
        self._changed_tid = scene.tids[scene.changed_uuid]
        self.gap_s = 0.0
        self.looks = 0
        self.longest_s = 0.0
        self.excess = 0
        self.shares: list[float] = []
        self.errors: list[float] = []

    def _run(self) -> None:
        last = time.monotonic()
        second = last + 1
        stolen_s = agent_guests.stolen_s()
        run_ns = schedstat.read(self._tid).run_ns
        since_ns = time.monotonic_ns()
        while not self._stopping.wait(SAMPLE_S):
            held = syscalls.get_attr(self._tid)
            changed = syscalls.get_attr(self._changed_tid)
            now = time.monotonic()
            self.looks += 1
            self.longest_s = max(self.longest_s, now - last)
            if not _holds(held, CONSTANT):
                self.gap_s += now - last
            if not any(_holds(changed, one) for one in CHANGED):
                self.excess += 1
            last = now
            if now >= second:
                later_ns = schedstat.read(self._tid).run_ns
                until_ns = time.monotonic_ns()
                share = (later_ns - run_ns) / (until_ns - since_ns)
                self.shares.append(share)
                now_stolen_s = agent_guests.stolen_s()
                stolen = (
                    1e9 * (now_stolen_s - stolen_s) / (until_ns - since_ns)
                )
                self.errors.append(
                    max(
                        0.0,
                        abs(share - CONSTANT.runtime_us / CONSTANT.period_us)
                        - stolen,
                    )
                )
                stolen_s = now_stolen_s
                run_ns, since_ns, second = later_ns, until_ns, now + 1


def _holds(attr: syscalls.Attr, wanted: reservation.Reservation) -> bool:
    return (
        attr.policy == syscalls.SCHED_DEADLINE
        and attr.runtime_ns == wanted.runtime_us * 1000
        and attr.period_ns == wanted.period_us * 1000
    )


class Operator(drill_scene.Background):
    """Changes a reservation by REST, whether or not anybody answers.

    :ivar sent: what may be in force: the last change that was answered with
        202, and all that were sent since without an answer.
    :ivar accepted: how many were answered with 202.
    :ivar statuses: how often each status came; 0 for no answer.
    """

    def __init__(self, scene: drill_scene.Scene) -> None:
        super().__init__()
        self._scene = scene
        self.sent: list[reservation.Reservation] = [CHANGED[0]]
        self.accepted = 0
        self.statuses: collections.Counter[int] = collections.Counter()

    def _run(self) -> None:
        number = 0
        while not self._stopping.wait(_PATCH_S):
            number += 1
            wanted = CHANGED[number % len(CHANGED)]
            self.sent.append(wanted)
            status = 0
            with contextlib.suppress(requests.RequestException):
                status = self._scene.services.request(
                    'PATCH',
                    '/v1/reservations/' + self._scene.changed_uuid,
                    json={
                        'runtime_us': wanted.runtime_us,
                        'period_us': wanted.period_us,
                    },
                ).status_code
            self.statuses[status] += 1
            if status == 202:
                self.accepted += 1
                self.sent = [wanted]


def run(
    scene: drill_scene.Scene,
    seconds: float,
    seed: int,
    pause_s: tuple[float, float] = (2.0, 8.0),
) -> dict[str, ty.Any]:
    """Kill parts at random for a while.

    Each part comes up before any is killed again; every fourth time two are
    killed at once.

    :param seconds: how long parts are killed; each at least once.
    :param seed: of the order.
    :param pause_s: between a recovery and the next kill, shortest and
        longest.
    :returns: what was lost, as figures.
    """
    with (
        drill_scene.Supervisor(scene) as supervisor,
        Sampler(scene) as sampler,
    ):
        with Operator(scene) as operator:
            faults = _kill(
                scene, supervisor, seconds, random.Random(seed), pause_s
            )
            time.sleep(2 * _PATCH_S)
        # The last change may have been accepted just now.
        give_up = time.monotonic() + _APPLY_S
        while time.monotonic() < give_up and not _as_ordered(scene, operator):
            time.sleep(0.1)
    return _found(scene, faults, sampler, operator)


def _kill(
    scene: drill_scene.Scene,
    supervisor: drill_scene.Supervisor,
    seconds: float,
    chance: random.Random,
    pause_s: tuple[float, float],
) -> list[Fault]:
    faults: list[Fault] = []
    bag: list[str] = []
    end = time.monotonic() + seconds
    every = set(drill_scene.COMPONENTS)
    while time.monotonic() < end or {one.component for one in faults} != every:
        time.sleep(chance.uniform(*pause_s))
        killed: list[str] = []
        for _ in range(2 if chance.random() < 0.25 else 1):
            if not bag:
                # None twice at once.
                bag = sorted(every.difference(killed))
                chance.shuffle(bag)
            killed.append(bag.pop())
        at = time.time()
        with supervisor.lock:
            for component in killed:
                scene.kill(component)
        took_s = recover(scene, at)
        faults += [Fault(one, at, took_s) for one in killed]
    return faults


def recover(scene: drill_scene.Scene, since: float) -> float:
    """Wait until every part does its work again.

    :param since: when parts were killed.
    :returns: how long it took, in seconds.
    :raises RuntimeError: when one does not come back.
    """
    give_up = time.monotonic() + RECOVER_S
    alive_at: float | None = None
    while time.monotonic() < give_up:
        time.sleep(0.25)
        if not scene.all_alive:
            alive_at = None
            continue
        alive_at = alive_at or time.time()
        with contextlib.suppress(requests.RequestException):
            if _works(scene, alive_at):
                return time.time() - since
    raise RuntimeError(
        'no sample of after %.0f s ago was stored: %s'
        % (
            time.time() - since,
            {
                name: scene.services.said(name)
                for name in ('agent', 'collector', 'api')
            },
        )
    )


def _works(scene: drill_scene.Scene, since: float) -> bool:
    """Whether what happened later than that is known to the API.

    :raises requests.RequestException: when it does not answer, or answers
        that it can't.
    """
    newest = scene.services.get(
        '/v1/usage', instance_uuid=scene.uuid, sort_dir='desc', limit=1
    )
    if (
        not newest['usage']
        or outages.seconds(newest['usage'][0]['at']) < since
    ):
        return False
    lost, back = (
        len(
            scene.services.get('/v1/events', code=str(code), limit=1000)[
                'events'
            ]
        )
        for code in (errors.Code.HYPERVISOR_LOST, errors.Code.HYPERVISOR_BACK)
    )
    return lost == back


def _found(
    scene: drill_scene.Scene,
    faults: list[Fault],
    sampler: Sampler,
    operator: Operator,
) -> dict[str, ty.Any]:
    recovered: dict[str, list[float]] = collections.defaultdict(list)
    for fault in faults:
        recovered[fault.component].append(fault.recovered_s)
    samples = [outages.samples(scene.services, one) for one in scene.tids]
    return {
        'faults': len(faults),
        'recovered_s': {
            name: {
                'n': len(values),
                'median': round(statistics.median(values), 2),
                'max': round(max(values), 2),
            }
            for name, values in sorted(recovered.items())
        },
        'gap_s': round(sampler.gap_s, 3),
        'looks': sampler.looks,
        'longest_look_s': round(sampler.longest_s, 3),
        'share_median': round(statistics.median(sampler.shares), 4),
        'share_error_median': round(statistics.median(sampler.errors), 4),
        'share_min': round(min(sampler.shares), 4),
        'samples_stored': sum(one.stored for one in samples),
        'samples_missing_us': sum(one.missing_us for one in samples),
        'samples_repeated': sum(one.repeated for one in samples),
        'doubled_promises': sampler.excess + _doubled(scene, operator),
        'patches': dict(sorted(operator.statuses.items())),
    }


def _doubled(scene: drill_scene.Scene, operator: Operator) -> int:
    """How many reservations are there twice, or are not what was ordered."""
    rows = scene.services.get('/v1/reservations', limit=1000)['reservations']
    counts = collections.Counter(one['instance_uuid'] for one in rows)
    wrong = sum(count - 1 for count in counts.values())
    return wrong + (not _as_ordered(scene, operator))


def _as_ordered(scene: drill_scene.Scene, operator: Operator) -> bool:
    """Whether the changed VM holds what may be in force."""
    held = syscalls.get_attr(scene.tids[scene.changed_uuid])
    return any(_holds(held, one) for one in operator.sent)

# SPDX-License-Identifier: Apache-2.0

"""Do guests, kernel and agent say the same of every instance?"""

from collections.abc import Mapping
import json
import os

import libvirt
import libvirt_qemu

from vsched_agent.tests.functional import agent_fixture
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import balloons

#: While something does not fit it is looked at so often, in seconds.
_AGAIN_S = 1.0
#: A step may take that long, in seconds; what does not fit for longer is
#: counted.
PATIENCE_S = 30.0
_ANSWER_S = 10
#: Of one CPU; what rounding whole microseconds makes, and more.
_TOLERANCE = 0.001


def online(one: agent_guests.Vm) -> set[int]:
    """The vCPUs that a guest says it uses, asked past the agent.

    :raises libvirt.libvirtError: when it does not answer.
    """
    answer = json.loads(
        libvirt_qemu.qemuAgentCommand(
            one.handle, '{"execute": "guest-get-vcpus"}', _ANSWER_S, 0
        )
    )
    return {vcpu['logical-id'] for vcpu in answer['return'] if vcpu['online']}


def bound(one: agent_guests.Vm) -> set[int]:
    """The vCPUs whose threads may not run on every CPU."""
    return {
        index
        for index, tid in enumerate(one.vcpu_tids)
        if len(os.sched_getaffinity(tid)) < (os.cpu_count() or 1)
    }


class Watch:
    """Looks now and then, and again until everything fits.

    :param guests: each with the CPUs that it was promised; 0 for none.
    :param collector: knows what the agent says.
    :param every_s: between two looks at a guest.
    :ivar looks: how many there were.
    :ivar misfits: sentences on what did not fit for longer than
        :data:`PATIENCE_S`.
    :ivar longest_s: how long something did not fit, at the most.
    """

    def __init__(
        self,
        guests: Mapping[agent_guests.Vm, float],
        collector: agent_fixture.Collector,
        every_s: float,
    ) -> None:
        self._guests = guests
        self._collector = collector
        self._every_s = every_s
        self._read = 0
        self._said: dict[str, balloons.BalloonReport] = {}
        self._due_s = dict.fromkeys(guests, 0.0)
        self._since_s: dict[agent_guests.Vm, float] = {}
        self._counted: set[agent_guests.Vm] = set()
        self.looks = 0
        self.misfits: list[str] = []
        self.longest_s = 0.0

    def look(self, now_s: float) -> None:
        """Look at the guests whose turn it is."""
        self._listen()
        for one, due_s in self._due_s.items():
            if now_s < due_s:
                continue
            self.looks += 1
            self._note(one, self._problem(one), now_s)

    def _listen(self) -> None:
        mark = self._collector.mark()
        for report in self._collector.reports[self._read : mark]:
            for said in report.balloons:
                self._said[said.instance_uuid] = said
        self._read = mark

    def _note(
        self, one: agent_guests.Vm, problem: str | None, now_s: float
    ) -> None:
        if problem is None:
            self._since_s.pop(one, None)
            self._counted.discard(one)
            self._due_s[one] = now_s + self._every_s
            return
        self._due_s[one] = now_s + _AGAIN_S
        lasted_s = now_s - self._since_s.setdefault(one, now_s)
        self.longest_s = max(self.longest_s, lasted_s)
        if lasted_s > PATIENCE_S and one not in self._counted:
            self._counted.add(one)
            self.misfits.append('%s: %s' % (one.spec.name, problem))

    def _problem(self, one: agent_guests.Vm) -> str | None:
        said = self._said.get(one.uuid)
        if said is None or said.state is balloons.BalloonState.RETURNING:
            return 'nobody says how it stands'
        try:
            used = online(one)
        except libvirt.libvirtError as error:
            return 'it does not answer: %s' % error
        return misfit(said, used, bound(one), self._guests[one], one.held())


def misfit(
    said: balloons.BalloonReport,
    used: set[int],
    bound_vcpus: set[int],
    promised: float,
    held: list[tuple[int, int] | None],
) -> str | None:
    """What does not fit, if anything.

    :param said: the agent's word.
    :param used: the guest's.
    :param bound_vcpus: those that may not run everywhere; so says the
        kernel, and the next one. One that is offline may still be among
        them.
    :param promised: CPUs that it has to hold.
    :param held: (runtime, period) of each vCPU, None without one.
    """
    if used != set(range(said.online_vcpus)):
        return 'it uses vCPUs %s, and should %d' % (
            sorted(used),
            said.online_vcpus,
        )
    if len(bound_vcpus & used) != len(said.cpus):
        return 'vCPUs %s are bound, and %d of %s should' % (
            sorted(bound_vcpus),
            len(said.cpus),
            sorted(used),
        )
    holding = {index for index, one in enumerate(held) if one is not None}
    if holding != (used if promised else set()):
        return 'vCPUs %s hold a reservation, and %s are used' % (
            sorted(holding),
            sorted(used),
        )
    got = sum(one[0] / one[1] for one in held if one is not None)
    if abs(got - promised) > _TOLERANCE:
        return '%.3f CPUs are held, and %.3f promised' % (got, promised)
    return None

# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Has instances use as many vCPUs as operators ordered."""

from vsched_agent.ballooning import acts as acts_of
from vsched_agent.ballooning import chronicle as chronicles
from vsched_agent.ballooning import instance as instances
from vsched_lib.contract import balloons
from vsched_lib.model import balloon
from vsched_lib.model import balloon_trial

Instance = instances.Instance


class Ordered:
    """Judges orders, and has them carried out.

    :param acts: what is done to one instance.
    :param chronicle: knows how instances stand.
    """

    def __init__(self, acts: acts_of.Acts,
                 chronicle: chronicles.Chronicle) -> None:
        self._acts = acts
        self._chronicle = chronicle

    def obey(self, one: Instance, part: balloon.Part | None,
             now_s: float) -> None:
        """Do what is ordered, or say why not; a later look goes on.

        :param part: the CPUs that it may have, where there are enough.
        """
        order = one.order
        assert order is not None and order.target_vcpus is not None
        target_vcpus = order.target_vcpus
        refused = balloons.refusal(
            target_vcpus, self._chronicle.report(one))
        if refused is not None:
            self._acts.refuse(one, refused)
            if one.record is not None and one.record.manual:
                # What it was left with is no good any more.
                self._acts.give_back(one, refused.detail,
                                     balloon_trial.Outcome.UNDONE)
            return
        if now_s < one.obey_s or one.answers is None:
            return
        one.refused = None
        cpus = () if part is None or part.vcpus != target_vcpus else (
            part.cpus)
        wanted = balloon.Part(target_vcpus, cpus)
        if one.record is None and target_vcpus == one.vcpus:
            return
        if target_vcpus == one.vcpus:
            self._acts.give_back(
                one, 'an operator ordered all %d vCPUs' % one.vcpus,
                balloon_trial.Outcome.UNDONE)
        elif one.online != target_vcpus or one.record is None or (
                not one.record.manual):
            self._acts.shrink(one, wanted, now_s, manual=True)
        elif self._acts.misplaced(one, wanted) and (
                one.standing.may_shrink(now_s)):
            self._acts.shrink(one, wanted, now_s, manual=True)

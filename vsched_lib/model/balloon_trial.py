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

"""When to take vCPUs away, and when to give them back.

Each instance has a standing; what happens to it makes another one of it.
Time is always given, never asked for.
"""

import dataclasses
import enum

from vsched_lib.model import contention


class Phase(enum.StrEnum):
    """How an instance stands."""

    FULL = 'full'
    TRIAL = 'trial'
    KEPT = 'kept'


class Outcome(enum.StrEnum):
    """What became of a balloon."""

    KEPT = 'kept'
    REVERTED = 'reverted'
    CALM = 'calm'
    FAILED = 'failed'
    UNDONE = 'undone'
    CHANGED = 'changed'
    PROPOSED = 'proposed'


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How soon things may happen; all in seconds.

    :param settle_s: after a balloon, before its effect is looked at.
    :param trial_s: for how long it is looked at.
    :param calm_s: for how long there has to be no need for a balloon before
        vCPUs are given back.
    :param cooldown_s: after vCPUs were given back, before any are taken.
    :param backoff_s: the same after a balloon that did not pay or failed;
        doubled each time that one more does in a row.
    :param backoff_max_s: longest of these.
    """

    settle_s: float = 2.0
    trial_s: float = 8.0
    calm_s: float = 10.0
    cooldown_s: float = 30.0
    backoff_s: float = 300.0
    backoff_max_s: float = 14_400.0


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """What a balloon must bring to be kept.

    :param progress_gain: growth of the tenant's counter per second, as a
        part of what it was.
    :param wait_cut: without a counter: by what part waiting shrinks.
    :param run_kept: without a counter: the part of its CPU time that the
        instance must still get.
    :param yields_cut: where KVM counts yields: by what part they shrink.
    """

    progress_gain: float = 0.05
    wait_cut: float = 0.5
    run_kept: float = 0.8
    yields_cut: float = 0.5


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a balloon pays, and why."""

    pays: bool
    reason: str


def judge(before: contention.Work, after: contention.Work,
          bar: Bar) -> Verdict:
    """Compare an instance's work before and after a balloon.

    The tenant's own counter decides when there is one: nothing that the
    host sees tells useful work from a loop that waits. Without it, waiting
    and yielding must shrink and the CPU time must stay.
    """
    if before.progress and after.progress is not None:
        gain = after.progress / before.progress - 1
        return Verdict(gain >= bar.progress_gain, (
            'its progress counter grew by %.1f a second, before it was '
            '%.1f (%+.1f %%)' % (
                after.progress, before.progress, 100 * gain)))
    if after.run < bar.run_kept * before.run:
        return Verdict(False, 'it got %.2f CPUs, before it was %.2f' % (
            after.run, before.run))
    if before.yields and after.yields is not None:
        return Verdict(
            after.yields <= (1 - bar.yields_cut) * before.yields,
            'its vCPUs yielded %.0f times a second, before it was %.0f' % (
                after.yields, before.yields))
    return Verdict(
        after.wait <= (1 - bar.wait_cut) * before.wait,
        'its vCPUs waited for %.2f CPUs, before it was %.2f' % (
            after.wait, before.wait))


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """How one instance stands.

    :param since_s: in this phase.
    :param not_before_s: no vCPU is taken away before that.
    :param failures: balloons in a row that did not pay, or failed.
    :param before: its work before the balloon that is on trial.
    :param calm_since_s: since when it needs no balloon; None while it does.
    """

    phase: Phase = Phase.FULL
    since_s: float = 0.0
    not_before_s: float = 0.0
    failures: int = 0
    before: contention.Work | None = None
    calm_since_s: float | None = None

    @property
    def ballooned(self) -> bool:
        """Whether it has fewer vCPUs than it is configured for."""
        return self.phase is not Phase.FULL

    def may_shrink(self, now_s: float) -> bool:
        """Whether vCPUs may be taken away."""
        return self.phase is not Phase.TRIAL and now_s >= self.not_before_s

    def shrunk(self, now_s: float, before: contention.Work,
               pace: Pace) -> 'Standing':
        """vCPUs were taken away; what that brings is on trial."""
        return dataclasses.replace(
            self, phase=Phase.TRIAL, since_s=now_s, before=before,
            calm_since_s=None, not_before_s=now_s + pace.cooldown_s)

    def settled(self, now_s: float, pace: Pace) -> bool:
        """Whether what is seen now is the balloon's effect."""
        return now_s >= self.since_s + pace.settle_s

    def due(self, now_s: float, pace: Pace) -> bool:
        """Whether the trial is over."""
        return (self.phase is Phase.TRIAL and
                now_s >= self.since_s + pace.settle_s + pace.trial_s)

    def kept(self, now_s: float) -> 'Standing':
        """The balloon pays."""
        return dataclasses.replace(
            self, phase=Phase.KEPT, since_s=now_s, failures=0)

    def watched(self, now_s: float, calm: bool) -> 'Standing':
        """Whether it needs the balloon, as seen now."""
        if not calm:
            return dataclasses.replace(self, calm_since_s=None)
        if self.calm_since_s is None:
            return dataclasses.replace(self, calm_since_s=now_s)
        return self

    def may_grow(self, now_s: float, pace: Pace) -> bool:
        """Whether vCPUs may be given back since nothing needs them."""
        return (self.ballooned and self.calm_since_s is not None and
                now_s >= self.calm_since_s + pace.calm_s)

    def full(self, now_s: float, outcome: Outcome,
             pace: Pace) -> 'Standing':
        """It has all of its vCPUs again."""
        failures, wait_s = self.failures, pace.cooldown_s
        if outcome in (Outcome.REVERTED, Outcome.FAILED):
            wait_s = max(wait_s, min(
                pace.backoff_max_s, pace.backoff_s * 2.0 ** min(
                    failures, 32)))
            failures += 1
        return Standing(
            Phase.FULL, now_s, now_s + wait_s, failures)

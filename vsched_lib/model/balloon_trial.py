# SPDX-License-Identifier: Apache-2.0

"""When to take vCPUs away, and when to give them back.

Each instance has an immutable status; events return a new one. The time is
always a parameter.
"""

import dataclasses
import enum

from vsched_lib.model import contention


#: Below this use, rates per second of CPU time are not compared.
_LEAST_CPUS = 0.001
#: Bounds the growth of a guest's counter, which may have any value.
_MOST_GAIN = 1e6


class Phase(enum.StrEnum):
    """The state of an instance's balloon."""

    FULL = 'full'
    TRIAL = 'trial'
    KEPT = 'kept'


class Outcome(enum.StrEnum):
    """The result of a balloon."""

    KEPT = 'kept'
    REVERTED = 'reverted'
    UNKNOWN = 'unknown'
    CALM = 'calm'
    FAILED = 'failed'
    UNDONE = 'undone'
    CHANGED = 'changed'
    PROPOSED = 'proposed'


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """Delays, all in seconds.

    :param settle_s: after a balloon, before its effect is measured.
    :param trial_s: for how long it is measured.
    :param calm_s: for how long there has to be no need for a balloon before
        vCPUs are given back.
    :param cooldown_s: after vCPUs were given back, before any are taken.
    :param backoff_s: the same after a balloon that did not pay or failed;
        doubled each time that one more does in a row; likewise where the
        effect is unknown.
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
    """What a balloon must achieve to be kept.

    :param progress_gain: growth of the tenant's counter, as a part of what
        it was.
    :param wait_share: an instance whose vCPUs wait for more than this part
        of the time that they can run is held up by others.
    :param run_kept: one that gets less than this part of the CPU time that
        it had before gets less.
    :param yields_cut: where KVM counts yields: by what part they must shrink
        per second of CPU time, or its vCPUs still spin.
    :param spare: an instance that could use less than this part of the vCPUs
        that it is left with has time to spare.
    """

    progress_gain: float = 0.05
    wait_share: float = 0.2
    run_kept: float = 0.8
    yields_cut: float = 0.5
    spare: float = 0.9


class Decision(enum.StrEnum):
    """The effect of a balloon."""

    PAYS = 'pays'
    LOSES = 'loses'
    UNKNOWN = 'unknown'


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a balloon pays, and why."""

    decision: Decision
    reason: str


def judge(
    before: contention.Work, after: contention.Work, bar: Bar, online: int
) -> Verdict:
    """Compare an instance's work before and after a balloon.

    The tenant's own counter decides when there is one. The host
    cannot distinguish useful work from a loop that waits, so without it a
    balloon pays only when the instance has time to spare on the vCPUs that
    it keeps, and loses only when the balloon itself holds it back.

    :param online: number of vCPUs that it keeps.
    """
    if (
        before.progress
        and after.progress is not None
        and (min(before.run, after.run) >= _LEAST_CPUS)
    ):
        return _by_counter(before, after, bar)
    return _by_use(before, after, bar, online)


def _by_counter(
    before: contention.Work, after: contention.Work, bar: Bar
) -> Verdict:
    assert before.progress and after.progress is not None
    gain = min(_MOST_GAIN, after.progress / before.progress - 1)
    # Other load takes CPU time away or leaves some: per second of CPU time
    # the instance's work is its own.
    efficiency = min(_MOST_GAIN, (gain + 1) * before.run / after.run - 1)
    reason = (
        'its progress counter grew by %.5g a second, before it was '
        '%.5g (%+.1f %%; per second of CPU time %+.1f %%)'
        % (after.progress, before.progress, 100 * gain, 100 * efficiency)
    )
    decision = Decision.LOSES
    if gain >= bar.progress_gain:
        if efficiency > -bar.progress_gain:
            decision = Decision.PAYS
        else:
            reason += ', as it got more CPU time'
    elif efficiency >= bar.progress_gain and _held_up(before, after, bar):
        # Other load may have come, or fewer vCPUs get less of the CPUs
        # beside the load that was there.
        decision = Decision.UNKNOWN
        reason += ', while others took its CPU time'
    return Verdict(decision, reason)


def _by_use(
    before: contention.Work, after: contention.Work, bar: Bar, online: int
) -> Verdict:
    if (
        before.yields
        and after.yields is not None
        and (min(before.run, after.run) >= _LEAST_CPUS)
    ):
        was, now = before.yields / before.run, after.yields / after.run
        if now > (1 - bar.yields_cut) * was:
            return Verdict(
                Decision.LOSES,
                'its vCPUs yielded %.5g times per second of '
                'CPU time, before it was %.5g' % (now, was),
            )
    if after.runnable < bar.spare * online:
        return Verdict(
            Decision.PAYS,
            'it could use %.2f of the %d CPUs that it is left '
            'with' % (after.runnable, online),
        )
    if after.run < bar.run_kept * before.run and not (
        _held_up(before, after, bar)
    ):
        return Verdict(
            Decision.LOSES,
            'it got %.2f CPUs, before it was %.2f, and uses '
            'all of what it is left with' % (after.run, before.run),
        )
    return Verdict(
        Decision.UNKNOWN,
        'it has no progress counter, and work cannot be distinguished '
        'from waiting: it got %.2f CPUs and waited for %.2f, before it '
        'was %.2f and %.2f' % (after.run, after.wait, before.run, before.wait),
    )


def _held_up(
    before: contention.Work, after: contention.Work, bar: Bar
) -> bool:
    """Return whether other load took CPU time that it had before."""
    return (
        after.run < bar.run_kept * before.run
        and after.wait_share > bar.wait_share
    )


@dataclasses.dataclass(frozen=True, slots=True)
class BalloonStatus:
    """The status of one instance.

    :param since_s: start of this phase.
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
        """Return whether vCPUs may be taken away."""
        return self.phase is not Phase.TRIAL and now_s >= self.not_before_s

    def shrunk(
        self, now_s: float, before: contention.Work, pace: Pace
    ) -> 'BalloonStatus':
        """Return the status on trial, after vCPUs were taken away."""
        return dataclasses.replace(
            self,
            phase=Phase.TRIAL,
            since_s=now_s,
            before=before,
            calm_since_s=None,
            not_before_s=now_s + pace.cooldown_s,
        )

    def settled(self, now_s: float, pace: Pace) -> bool:
        """Return whether measurements show the balloon's effect by now."""
        return now_s >= self.since_s + pace.settle_s

    def due(self, now_s: float, pace: Pace) -> bool:
        """Return whether the trial is over."""
        return (
            self.phase is Phase.TRIAL
            and now_s >= self.since_s + pace.settle_s + pace.trial_s
        )

    def kept(self, now_s: float) -> 'BalloonStatus':
        """Return the status of a balloon that pays."""
        return dataclasses.replace(
            self, phase=Phase.KEPT, since_s=now_s, failures=0
        )

    def watched(self, now_s: float, calm: bool) -> 'BalloonStatus':
        """Return the status after a check whether it needs the balloon."""
        if not calm:
            return dataclasses.replace(self, calm_since_s=None)
        if self.calm_since_s is None:
            return dataclasses.replace(self, calm_since_s=now_s)
        return self

    def may_grow(self, now_s: float, pace: Pace) -> bool:
        """Return whether vCPUs may be given back as the host is calm."""
        return (
            self.ballooned
            and self.calm_since_s is not None
            and now_s >= self.calm_since_s + pace.calm_s
        )

    def full(
        self, now_s: float, outcome: Outcome, pace: Pace
    ) -> 'BalloonStatus':
        """Return the status with all vCPUs given back."""
        failures, wait_s = self.failures, pace.cooldown_s
        if outcome in (Outcome.REVERTED, Outcome.UNKNOWN, Outcome.FAILED):
            wait_s = max(
                wait_s,
                min(
                    pace.backoff_max_s,
                    pace.backoff_s * 2.0 ** min(failures, 32),
                ),
            )
            failures += 1
        return BalloonStatus(Phase.FULL, now_s, now_s + wait_s, failures)

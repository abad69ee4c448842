# SPDX-License-Identifier: Apache-2.0

"""Decide from samples of the host whether idle CPU time is given out."""

import typing as ty

#: Seconds between two samples while the flag is set, and after a sample that
#: found an ordinary thread waiting.
INTERVAL_S = 0.01
CONFIRM_S = 0.002
#: Seconds between two samples while the flag is not set.
OFF_INTERVAL_S = 0.02
#: Consecutive samples with a waiting ordinary thread that clear the flag.
CONFIRMATIONS = 3
#: The flag is set after CPUs were idle for this long, in seconds. After a
#: shorter wait it is set again sooner: after QUIET_FACTOR times as long as
#: threads waited, which no load has that is busy half of the time, and after
#: BRIEF_QUIET_S at least, twice as long each time that it was set for less
#: than STABLE_FACTOR times as long.
QUIET_S = 0.3
QUIET_FACTOR = 1.5
BRIEF_QUIET_S = 0.04
STABLE_FACTOR = 4
#: Samples take at most this part of a CPU over time; CPU time that is saved up
#: for quick successions of samples, in seconds.
COST_PART = 0.02
COST_SAVED_S = 0.002
#: Part of their CPU time that ordinary threads which want all of it may lose
#: while they are found waiting, and the largest credit and debt, in seconds of
#: that loss.
ALLOWED_PART = 0.006
#: What a thread with the flag gets at most; the kernel keeps the rest for
#: ordinary ones.
_RECLAIMED_CPUS = 0.95
CREDIT_S = 0.02
DEBT_S = 0.007


class Sample(ty.NamedTuple):
    """The host's runnable threads at one moment.

    :param cpus: CPUs online.
    :param runnable: all threads that run or wait for a CPU, without the
        sampling thread and throttled ones.
    :param wanting: watched threads that are runnable, throttled ones included.
    :param running: those of them that are in ``runnable``.
    :param own: threads in ``runnable`` that belong to the processes of watched
        ones.
    :param taken_part: what the watched threads take beyond their reservations
        of the CPUs that those leave; see :func:`taken_part`.
    """

    cpus: int
    runnable: int
    wanting: int
    running: int
    own: int = 0
    taken_part: float = 1.0

    @property
    def saturated(self) -> bool:
        """Whether watched threads and all others need more CPUs than exist.

        False while there are no others.
        """
        others = self.runnable - self.running
        return others > self.own and others + max(1, self.wanting) > self.cpus

    @property
    def others_part(self) -> float:
        """The part of a wait that threads of other processes have.

        Ordinary threads that wait share the CPUs that are left, so the loss
        of a guest's own threads is not a loss of others.
        """
        others = self.runnable - self.running
        return (others - self.own) / others if others > self.own else 0.0


def taken_part(cpus: int, reserved_cpus: ty.Iterable[float]) -> float:
    """Return what ordinary threads lose while they wait for watched ones.

    :param cpus: CPUs online.
    :param reserved_cpus: what each watched thread reserves, in CPUs.
    :returns: the part of the CPUs left by these reservations that the threads
        take with the flag set, 0 to 1. Other reservations are not known here.
    """
    reserved = list(reserved_cpus)
    left = cpus - sum(reserved)
    gained = min(
        sum(max(0.0, _RECLAIMED_CPUS - one) for one in reserved),
        _RECLAIMED_CPUS * cpus - sum(reserved),
    )
    return min(1.0, max(0.0, gained / left)) if left > 0 else 1.0


class CostLimit:
    """Bounds the CPU time that samples take, over time.

    Each sample may cost more than its part, so that a few samples can follow
    each other quickly.

    :param now_s: the steady clock.
    """

    def __init__(self, now_s: float) -> None:
        self._last_s = now_s
        self._left_s = COST_SAVED_S

    def pause_s(self, wanted_s: float, cost_s: float, now_s: float) -> float:
        """Return the time until the next sample, in seconds.

        :param wanted_s: the shortest pause.
        :param cost_s: CPU time of the last sample.
        """
        self._left_s = min(
            COST_SAVED_S,
            self._left_s + COST_PART * (now_s - self._last_s) - cost_s,
        )
        self._last_s = now_s
        return max(wanted_s, -self._left_s / COST_PART)


class Policy:
    """Decides from samples whether the flag is set.

    :param now_s: the steady clock.
    """

    def __init__(self, now_s: float) -> None:
        self.on = False
        self._last_s = now_s
        self._credit_s = CREDIT_S
        self._clear_s = 0.0
        self._found = 0
        self._unpaid_s = 0.0
        #: For how long the flag has been set.
        self._on_s = 0.0
        #: For how long threads have waited since it was cleared.
        self._busy_s = QUIET_S
        self._brief_quiet_s = BRIEF_QUIET_S

    def take(self, sample: Sample, now_s: float) -> bool:
        """Account for one sample.

        :returns: whether the flag is to be set now.
        """
        passed_s = max(0.0, now_s - self._last_s)
        self._last_s = now_s
        self._credit_s = min(
            CREDIT_S, self._credit_s + ALLOWED_PART * passed_s
        )
        if self.on:
            self._sample_on(sample, passed_s)
        else:
            self._sample_off(sample, passed_s)
        return self.on

    def clear(self) -> None:
        """Clear the flag; it is set after a quiet time at the earliest."""
        self.on = False
        self._clear_s = 0.0
        self._found = 0
        self._on_s = 0.0
        self._busy_s = QUIET_S

    @property
    def interval_s(self) -> float:
        """Seconds until the next sample."""
        if not self.on:
            return OFF_INTERVAL_S
        return CONFIRM_S if self._found else INTERVAL_S

    def _sample_on(self, sample: Sample, passed_s: float) -> None:
        self._on_s += passed_s
        if not sample.saturated:
            self._found = 0
            return
        # Most waits are short. A first sample counts as a short one, and as
        # all the time since the last sample if it is confirmed.
        self._found += 1
        part = (
            sample.others_part * sample.taken_part if sample.wanting else 0.0
        )
        paid_s = min(passed_s, CONFIRM_S)
        if self._found == 1:
            self._unpaid_s = passed_s - paid_s
        self._credit_s -= part * paid_s
        if self._found >= CONFIRMATIONS:
            self._credit_s -= part * self._unpaid_s
            self._back_off()
        elif self._credit_s <= 0:
            self._back_off()
        self._credit_s = max(self._credit_s, -DEBT_S)

    def _back_off(self) -> None:
        """Clear the flag, for a short time if the wait turns out short."""
        stable = self._on_s >= STABLE_FACTOR * self._brief_quiet_s
        self._brief_quiet_s = (
            BRIEF_QUIET_S if stable else min(QUIET_S, 2 * self._brief_quiet_s)
        )
        self.clear()
        self._busy_s = 0.0

    def _sample_off(self, sample: Sample, passed_s: float) -> None:
        passed_s = min(passed_s, 2 * OFF_INTERVAL_S)
        if sample.saturated:
            self._busy_s += passed_s
            self._clear_s = max(0.0, self._clear_s - 5 * passed_s)
            return
        self._clear_s += passed_s
        quiet_s = min(
            QUIET_S, max(self._brief_quiet_s, QUIET_FACTOR * self._busy_s)
        )
        if self._clear_s >= quiet_s and self._credit_s > 0:
            self.on = True

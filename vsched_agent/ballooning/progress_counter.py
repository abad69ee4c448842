# SPDX-License-Identifier: Apache-2.0

"""Read the progress counters of guests."""

from collections.abc import Callable
import math
import threading

from oslo_log import log as logging

from vsched_agent.ballooning import action_runner
from vsched_agent.ballooning import base
from vsched_agent.ballooning import instance as instances
from vsched_agent.hypervisor import vcpu_channel as channels

LOG = logging.getLogger(__name__)

Instance = instances.Instance

#: Seconds between two reads of a progress counter.
_COUNTER_S = 0.9
#: Seconds until another read of a counter that did not exist.
_COUNTERLESS_S = 10.0


class ProgressCounters:
    """Reads the instances' counters; every method returns at once.

    :param settings: the path of the counter, and thresholds.
    :param channel: the channel to the guests.
    :param runner: runs actions.
    :param clock: monotonic seconds.
    :param post: queues a call for the loop's thread.
    :param decide: makes decisions; called by that thread.
    """

    def __init__(
        self,
        settings: base.Settings,
        channel: channels.VcpuChannel,
        runner: action_runner.ActionRunner,
        clock: Callable[[], float],
        post: Callable[[Callable[[], None]], None],
        decide: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._channel = channel
        self._runner = runner
        self._clock = clock
        self._post = post
        self._decide = decide

    def read(self, one: Instance, now_s: float) -> None:
        """Read an instance's counter if that is due."""
        path = self._settings.progress_path
        if not (path and one.flavor.auto and one.reachable) or (
            now_s < one.counter_s
        ):
            return
        # An idle instance need not be read.
        if one.record is None and (
            one.window.work().runnable < self._settings.active_cpus
        ):
            return
        # Not again before this read has finished.
        one.counter_s = math.inf
        uuid = one.uuid

        def act() -> action_runner.Completion:
            value = None
            try:
                value = self._channel.progress(
                    uuid, path, self._settings.guest_timeout_s
                )
            except channels.ChannelFailed as failure:
                LOG.debug('instance %s: %s', uuid, failure)
            at_s = self._clock()
            return lambda: self._add_reading(one, at_s, value)

        self._runner.submit(
            one,
            act,
            lambda error: self._add_reading(one, self._clock(), None),
            False,
        )

    def read_soon(self, one: Instance, now_s: float) -> None:
        """Read the counter as soon as it yields a rate, then decide.

        Otherwise the decision would wait for the next sample.
        """
        if one.decide_early:
            return
        one.decide_early = True
        if not math.isinf(one.counter_s):
            timer = threading.Timer(
                max(0.0, one.counter_s - now_s),
                self._post,
                [lambda: self.read(one, self._clock())],
            )
            timer.daemon = True
            timer.start()

    def _add_reading(
        self, one: Instance, at_s: float, value: int | None
    ) -> None:
        if value is None:
            one.counter.clear()
            one.counter_s = at_s + _COUNTERLESS_S
        else:
            one.counter_s = at_s + _COUNTER_S
            one.counter.append((at_s, value))
        if one.decide_early:
            one.decide_early = False
            self._decide()

# SPDX-License-Identifier: Apache-2.0

"""Events about instances' balloons."""

from vsched_agent.ballooning import base
from vsched_agent.ballooning import instance as instances
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import balloon_trial


class BalloonEvents:
    """Adds an instance's name and vCPUs to events about it.

    :param emit_event: emits events.
    """

    def __init__(self, emit_event: base.EventCallback) -> None:
        self._emit_event = emit_event

    def emit(
        self,
        one: instances.Instance,
        code: errors.Code,
        severity: messages.Severity,
        detail: str,
        outcome: balloon_trial.Outcome | None = None,
        figures: dict[str, object] | None = None,
    ) -> None:
        """Emit an event about an instance."""
        self._emit_event(
            code,
            severity,
            '%s: %s' % (one.domain.name, detail),
            one.uuid,
            {
                'vcpus': one.online,
                'configured': one.vcpus,
                **({'outcome': str(outcome)} if outcome else {}),
                **(figures or {}),
            },
        )

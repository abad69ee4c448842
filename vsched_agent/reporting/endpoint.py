# SPDX-License-Identifier: Apache-2.0

"""The agent's RPC endpoint: notifications of the API."""

import typing as ty

from oslo_log import log as logging

from vsched_lib.contract import agent_rpc

LOG = logging.getLogger(__name__)


class Endpoint(agent_rpc.AgentEndpoint):
    """Has the reporter fetch what the API announces.

    :param on_overrides_changed: fetches the host's overrides.
    :param on_jobs_changed: fetches the host's jobs.
    """

    def __init__(
        self,
        on_overrides_changed: ty.Callable[[], None],
        on_jobs_changed: ty.Callable[[], None],
    ) -> None:
        self._on_overrides_changed = on_overrides_changed
        self._on_jobs_changed = on_jobs_changed

    def on_overrides_changed(self, generation: int) -> None:
        """Fetch the overrides; the notification does not contain them."""
        LOG.info('Overrides of generation %d are announced', generation)
        self._on_overrides_changed()

    def on_jobs_changed(self, generation: int) -> None:
        """Fetch the jobs; the notification does not contain them."""
        LOG.info('Jobs of generation %d are announced', generation)
        self._on_jobs_changed()

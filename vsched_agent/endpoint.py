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

"""What the API may tell the agent."""

import typing as ty

from vsched_lib.contract import rpc


class Endpoint(rpc.AgentEndpoint):
    """Passes news from the bus on to the reporter.

    :param on_overrides_changed: fetches the host's overrides.
    :param on_jobs_changed: fetches the host's jobs.
    """

    def __init__(self, on_overrides_changed: ty.Callable[[], None],
                 on_jobs_changed: ty.Callable[[], None]) -> None:
        self._on_overrides_changed = on_overrides_changed
        self._on_jobs_changed = on_jobs_changed

    def on_overrides_changed(self, generation: int) -> None:
        """Fetch them: the collector says what they are, not the cast."""
        self._on_overrides_changed()

    def on_jobs_changed(self, generation: int) -> None:
        """Likewise."""
        self._on_jobs_changed()

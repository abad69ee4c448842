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

"""What others have measured on this host meanwhile.

Profiles are made by a process of their own. The agent looks whether there is
a new one, tells of it, and takes it into account.
"""

from vsched_agent.profiling import store
from vsched_lib.contract import profiles as contract
from vsched_lib.model import error_change

Source = contract.ProfileSource


class News:
    """Finds profiles that were not seen yet.

    :param profiles: where they are kept.
    """

    def __init__(self, profiles: store.Profiles[contract.ErrorProfile],
                 ) -> None:
        self._profiles = profiles
        self._seen: dict[Source, int] = {}
        self._latest: dict[Source, contract.ErrorProfile] = {}

    def benchmark(self) -> contract.ErrorProfile | None:
        """The newest profile that was measured on purpose, as last seen."""
        return self._latest.get(Source.BENCHMARK)

    def look(self) -> list[tuple[
            contract.ErrorProfile, list[error_change.Change]]]:
        """The newest profile of each source that has a new one.

        :returns: with what has changed since the one before. At the first
            call nothing has: whoever asks has just started.
        """
        found = []
        for source, version in self._profiles.newest().items():
            before = self._seen.get(source)
            if before == version:
                continue
            self._seen[source] = version
            profile = self._profiles.load(source, version)
            if profile is None:
                continue
            older = self._latest.get(source)
            self._latest[source] = profile
            found.append((profile, [] if older is None else
                          error_change.changes(older.points, profile.points)))
        return found

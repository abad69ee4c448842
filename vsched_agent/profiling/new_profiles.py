# SPDX-License-Identifier: Apache-2.0

"""What others have measured on this host meanwhile.

Profiles are made by a process of their own. The agent looks whether there is
a new one, reports it, and takes it into account.
"""

import typing as ty

from vsched_agent.profiling import store
from vsched_lib.contract import profiles as contract

Source = contract.ProfileSource


class News(ty.Generic[store.Kind]):
    """Finds profiles that were not seen yet.

    :param profiles: where they are kept.
    """

    def __init__(self, profiles: store.Profiles[store.Kind]) -> None:
        self._profiles: store.Profiles[store.Kind] = profiles
        self._seen: dict[Source, int] = {}
        self._latest: dict[Source, store.Kind] = {}
        self._measured: int | None = None

    def benchmark(self) -> store.Kind | None:
        """The newest profile that was measured on purpose, as last seen."""
        return self._latest.get(Source.BENCHMARK)

    def poll(self) -> list[tuple[store.Kind, store.Kind | None]]:
        """Return the newest profile of each source that has a new one.

        :returns: with the one before it; None at the first call, since the
            caller has just started.
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
            found.append((profile, self._latest.get(source)))
            self._latest[source] = profile
        return found

    def measured(self, before: int | None) -> list[store.Kind]:
        """Return the benchmark runs finished as of the last poll.

        :param before: the newest version that was reported already. None when
            unknown: then the newest profile is the only one returned,
            as for versions that begin anew.
        :returns: the oldest first; those that cannot be read are left out.
        """
        newest = self._seen.get(Source.BENCHMARK)
        if newest == self._measured:
            return []
        self._measured = newest
        if newest is None or newest == before:
            return []
        versions = [newest]
        if before is not None and before < newest:
            versions = [
                one
                for one in self._profiles.versions(Source.BENCHMARK)
                if before < one <= newest
            ]
        found = (
            self._profiles.load(Source.BENCHMARK, one) for one in versions
        )
        return [one for one in found if one is not None]

# SPDX-License-Identifier: Apache-2.0

"""A reader for hypervisors whose instances no reader can read yet."""

from collections.abc import Collection
from collections.abc import Mapping
import typing as ty

from vsched_agent.accounting import base
from vsched_agent.hypervisor import base as hypervisor


class NoReader(base.Reader):
    """Reads nothing: instances have no samples."""

    def read(self, domain: hypervisor.Domain) -> base.Reading | None:
        """Return nothing."""
        return None

    def keep(self, uuids: Collection[str]) -> None:
        """Do nothing."""

    def checkpoint(self) -> dict[str, ty.Any]:
        """Return nothing."""
        return {}

    def resume(self, checkpoint: Mapping[str, ty.Any]) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

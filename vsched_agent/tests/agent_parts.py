# SPDX-License-Identifier: Apache-2.0

"""What a whole agent takes in the place of this host's kernel."""

import types
import typing as ty

from vsched_agent.enforcement import base
from vsched_agent.enforcement import budget_expiry
from vsched_agent.tests import fakes
from vsched_lib.model import reservation


class Capacity(fakes.FakeCapacity):
    """Nothing of it leaks."""

    def measured(self) -> ty.Any:
        """What was leaked."""
        return types.SimpleNamespace(leaked_mcpu=0)


class Meter(fakes.FakeMeter):
    """Counts nothing."""

    def close(self) -> None:
        """There is nothing to close."""


class Ladder:
    """One backend.

    :ivar found: the state of its budget expiry checks.
    """

    def __init__(self, backend: base.Backend) -> None:
        self.backends: dict[reservation.Backend, base.Backend] = {
            backend.name: backend
        }
        self.found = budget_expiry.CheckStatus()

    def support(self, name: reservation.Backend) -> base.Support:
        """Whether it can be used."""
        return self.backends[name].supports()

    def check_status(self) -> budget_expiry.CheckStatus:
        """Return the state of its budget expiry checks."""
        return self.found

# SPDX-License-Identifier: Apache-2.0

"""Flavors: what they have to claim in placement."""

from collections.abc import Mapping
import typing as ty

from vsched_client.v1 import base


class Claim(ty.TypedDict):
    """What a flavor reserves, and has to claim for it."""

    agrees: bool
    extra_specs: dict[str, str]
    runtime_us: int | None
    period_us: int | None
    mode: str | None
    backend: str | None
    claim_mcpu: int
    guest_mcpu: int
    overhead_mcpu: int
    notes: list[str]


class Flavors(base.Noun):
    """``/v1/flavors``."""

    def claim(self, extra_specs: Mapping[str, str], vcpus: int) -> Claim:
        """Ask what a flavor has to claim; nothing is stored.

        :param extra_specs: all that the flavor has.
        :returns: ``extra_specs`` are those with the right claim.
        """
        return ty.cast(
            Claim,
            self._api.one(
                'claim',
                'POST',
                'flavors',
                'claims',
                body={'extra_specs': dict(extra_specs), 'vcpus': vcpus},
            ),
        )

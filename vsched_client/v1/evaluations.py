# SPDX-License-Identifier: Apache-2.0

"""Evaluations: on which hosts instances would fit, and why not elsewhere."""

from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

from vsched_client import adapter
from vsched_client.v1 import base


class Problem(ty.TypedDict):
    """What a host lacks."""

    cause: str
    detail: str
    unknown: bool


class Weights(ty.TypedDict):
    """What the score of a host is made of."""

    headroom: float | None
    allocation_error: float | None
    io_overhead: float | None


class Place(ty.TypedDict):
    """How many instances a host gets."""

    host: str
    instances: int


class Verdict(ty.TypedDict, total=False):
    """Whether instances fit on one host."""

    host: str
    state: str
    fits: bool
    room: int | None
    score: float
    weights: Weights
    backend: str | None
    demand_mcpu: int
    guest_mcpu: int
    overhead_mcpu: int | None
    margin_ppm: int
    measured_p99_lower_ppm: int | None
    free_mcpu: int
    capacity_mcpu: int
    problems: list[Problem]


class Evaluation(ty.TypedDict, total=False):
    """Where so many instances would be placed."""

    instances: int
    hosts_total: int
    hosts_fit: int
    room: int | None
    all_fit: bool
    placed: list[Place]
    hosts: list[Verdict]


class Evaluations(base.Noun):
    """``/v1/evaluations``."""

    def create(
        self,
        extra_specs: Mapping[str, str] | None = None,
        vcpus: int | None = None,
        override: Mapping[str, ty.Any] | None = None,
        demand_mcpu: int | None = None,
        instances: int = 1,
        hosts: Sequence[str] = (),
        limit: int | None = None,
    ) -> Evaluation:
        """Ask where instances would fit; nothing is stored.

        :param extra_specs: of a flavor; or ``demand_mcpu``.
        :param override: what an operator would set over the flavor.
        :param hosts: only these; none for all.
        :param limit: the most hosts in the answer.
        """
        body: adapter.Object = {
            name: value
            for name, value in (
                ('extra_specs', extra_specs),
                ('vcpus', vcpus),
                ('override', override or None),
                ('demand_mcpu', demand_mcpu),
                ('instances', instances),
                ('hosts', list(hosts) or None),
                ('limit', limit),
            )
            if value is not None
        }
        return ty.cast(
            Evaluation,
            self._api.one('evaluation', 'POST', 'evaluations', body=body),
        )

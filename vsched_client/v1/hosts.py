# SPDX-License-Identifier: Apache-2.0

"""Hosts, as their agents report them."""

from collections.abc import Iterator
import typing as ty

from vsched_client.v1 import base


class Backend(ty.TypedDict):
    """Whether a host can use a backend, and if not, why."""

    name: str
    usable: bool
    reasons: list[str]


class Host(ty.TypedDict, total=False):
    """A host; None for what its agent has not reported."""

    name: str
    state: str
    last_report_at: str | None
    clock_skew_s: float | None
    instances: int
    problem: str | None
    agent_version: str | None
    kernel: str | None
    hypervisor: str | None
    cpus: int | None
    tick_us: int | None
    capacity_mcpu: int | None
    admitted_mcpu: int | None
    reserve_mcpu: int | None
    backends: list[Backend]
    placement: dict[str, ty.Any] | None
    policy: dict[str, ty.Any] | None
    verification: dict[str, ty.Any] | None


class Difference(ty.TypedDict, total=False):
    """A difference between placement, the database and the kernel."""

    host: str
    kind: str
    detail: str
    consumer: str | None
    provider_uuid: str | None
    claimed_mcpu: int | None
    promised_mcpu: int | None
    held_mcpu: int | None


class Audit(ty.TypedDict):
    """The result of an audit."""

    host: str
    agrees: bool
    differences: list[Difference]


class Hosts(base.Noun):
    """``/v1/hosts``."""

    def list(self, limit: int | None = None) -> Iterator[Host]:
        """Iterate over hosts in the order of their names.

        :param limit: the most hosts to return; None for all.
        """
        return ty.cast(
            Iterator[Host], self._api.pages('hosts', 'hosts', limit=limit)
        )

    def get(self, name: str) -> Host:
        """Return one host."""
        return ty.cast(Host, self._api.one('host', 'GET', 'hosts', name))

    def audit(self, name: str) -> Audit:
        """Compare placement, the database and the kernel's state."""
        return ty.cast(
            Audit, self._api.one('audit', 'GET', 'hosts', name, 'audit')
        )

    def delete(self, name: str, force: bool = False) -> None:
        """Delete a host that does not report any more.

        :param force: also when it lists instances that no other host lists.
        """
        self._api.call(
            'DELETE', 'hosts', name, query={'force': True} if force else None
        )

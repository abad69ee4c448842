# SPDX-License-Identifier: Apache-2.0

"""Hosts, as their agents report them."""

from collections.abc import Iterator
import typing as ty

from vsched_client.v1 import base

#: What a list may be sorted by.
SORT_KEYS = ('name', 'last_report_at', 'admitted_mcpu')


class Backend(ty.TypedDict):
    """Whether a host can use a backend, and if not, why."""

    name: str
    usable: bool
    reasons: list[str]


class Placement(ty.TypedDict):
    """The state of a host in placement, as of the last success."""

    state: str
    detail: str
    provider_uuid: str | None
    offered_mcpu: int | None
    claimed_mcpu: int | None


class Policy(ty.TypedDict):
    """How an agent uses its measurements."""

    confidence: float
    max_margin_ppm: int
    max_overhead_ppm: int
    refuse_unpriced: bool


class Contradiction(ty.TypedDict):
    """What a host reports and Nova or placement does not confirm."""

    code: str
    detail: str


class Verification(ty.TypedDict):
    """The last comparison of a host's reports with Nova and placement."""

    checked_at: str
    cpus: int | None
    contradictions: list[Contradiction]


class Finding(ty.TypedDict):
    """Something that limits a host, and what can be done about it."""

    level: str
    subject: str
    text: str
    remedy: str


class FindingCounts(ty.TypedDict):
    """How many findings a host has of each level."""

    problem: int
    note: int


class Host(ty.TypedDict, total=False):
    """A host; None for what its agent has not reported."""

    name: str
    state: str
    last_report_at: str | None
    clock_skew_s: float | None
    last_batch: int
    overrides_generation: int
    instances: int
    problem: str | None
    agent_version: str | None
    kernel: str | None
    boot_id: str | None
    hypervisor: str | None
    cpus: int | None
    tick_us: int | None
    capacity_mcpu: int | None
    admitted_mcpu: int | None
    reserve_mcpu: int | None
    leaked_mcpu: int | None
    budget_check_us: int | None
    backends: list[Backend]
    placement: Placement | None
    policy: Policy | None
    finding_counts: FindingCounts | None
    verification: Verification | None


class DetailedHost(Host, total=False):
    """One host; findings are None when its agent does not report them."""

    findings: list[Finding] | None


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

    def list(
        self,
        limit: int | None = None,
        state: str | None = None,
        name_prefix: str | None = None,
        backend: str | None = None,
        sort_key: str | None = None,
        descending: bool = False,
    ) -> Iterator[Host]:
        """Iterate over hosts in the order of their names, or of another key.

        :param limit: the most hosts to return; None for all.
        :param name_prefix: only those whose names begin with it.
        :param backend: only those that can use it.
        :param sort_key: one of :data:`SORT_KEYS`; None for the first one.
        """
        return ty.cast(
            Iterator[Host],
            self._api.pages(
                'hosts',
                'hosts',
                query={
                    'state': state,
                    'name_prefix': name_prefix,
                    'backend': backend,
                    **base.sorted_by(sort_key, descending),
                },
                limit=limit,
            ),
        )

    def get(self, name: str) -> DetailedHost:
        """Return one host."""
        return ty.cast(
            DetailedHost, self._api.one('host', 'GET', 'hosts', name)
        )

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

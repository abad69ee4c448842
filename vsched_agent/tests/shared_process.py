# SPDX-License-Identifier: Apache-2.0

"""Reads instances whose threads are all in one process."""

from collections.abc import Collection
from collections.abc import Iterator

from vsched_agent.accounting import base as readings
from vsched_agent.accounting import qemu
from vsched_agent.hypervisor import base


class SharedProcessReader(qemu.ProcessReader):
    """Counts the threads that a domain names, and no other of its process."""

    def _count(self, domain: base.Domain) -> int:
        return len(self._tids(domain))

    def _tids(self, domain: base.Domain) -> Collection[int]:
        return dict(self._roles(domain)).keys()

    def _roles(
        self, domain: base.Domain
    ) -> Iterator[tuple[int, readings.Role]]:
        for tid in domain.emulator_tids:
            yield tid, readings.Role.EMULATOR
        yield from super()._roles(domain)

    def _direct_ns(
        self,
        domain: base.Domain,
        known: qemu._Process,
        uses: list[readings.ThreadUse],
    ) -> int:
        return sum(
            use.run_ns for use in uses if use.role is not readings.Role.VCPU
        )

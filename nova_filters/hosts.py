# SPDX-License-Identifier: Apache-2.0

"""What is known of all hosts at one moment.

Immutable: readers need no lock.
"""

from collections.abc import Mapping
import logging
import typing as ty

from nova_filters import flavor_request
from vsched_lib.contract import snapshot
from vsched_lib.contract import wire
from vsched_lib.model import fit
from vsched_lib.model import interference

LOG = logging.getLogger(__name__)

#: Maximum number of flavors whose needs a host caches.
MAX_NEEDS = 512


class Host:
    """One host, and what flavors need of it.

    :param reported: the host as the service reports it.
    :param model: the same for :mod:`vsched_lib.model`.
    :param needs: by flavor, computed from the same facts.
    """

    __slots__ = ('_needs', 'capacity_mcpu', 'free_mcpu', 'model', 'reported')

    def __init__(
        self,
        reported: snapshot.Host,
        model: fit.Host,
        needs: dict[flavor_request.FlavorRequest, fit.Need],
    ) -> None:
        self.reported = reported
        self.model = model
        self.capacity_mcpu = model.capacity_mcpu
        self.free_mcpu = model.capacity_mcpu - reported.admitted_mcpu
        # Two threads may add to it: both add the same value.
        self._needs = needs

    def need(self, request: flavor_request.FlavorRequest) -> fit.Need:
        """Return what an instance needs of this host."""
        found = self._needs.get(request)
        if found is None:
            found = request.asking.need(self.model)
            if len(self._needs) >= MAX_NEEDS:
                self._needs.clear()
            self._needs[request] = found
        return found

    def changed(self, reported: snapshot.Host) -> 'Host':
        """Return the host after a change, with the needs that still hold."""
        before = self.reported
        if (reported.facts, reported.certificates, reported.prices_ns) == (
            before.facts,
            before.certificates,
            before.prices_ns,
        ):
            # The common case: an instance came or went.
            return Host(reported, self.model, self._needs)
        # Computed here rather than within the next scheduling request.
        model = reported.fit()
        return Host(
            reported,
            model,
            {
                request: request.asking.need(model)
                for request in list(self._needs)
            },
        )


class Hosts(ty.NamedTuple):
    """All hosts.

    :param version: None before the first answer.
    :param tag: ETag of the last answer.
    :param down: names of hosts whose agents do not report.
    :param neighbours: how workload classes slow each other down.
    """

    version: int | None
    tag: str | None
    by_name: Mapping[str, Host]
    down: frozenset[str]
    neighbours: interference.Interference

    def after(self, answer: snapshot.Snapshot, tag: str | None) -> 'Hosts':
        """Return what is known after an answer.

        :param tag: ETag of that answer.
        """
        by_name = {} if answer.full else dict(self.by_name)
        for reported in answer.hosts:
            before = self.by_name.get(reported.name)
            try:
                by_name[reported.name] = (
                    Host(reported, reported.fit(), {})
                    if before is None
                    else before.changed(reported)
                )
            except wire.MalformedMessage as problem:
                # Skip this host only.
                LOG.error('vsched: host %s: %s', reported.name, problem)
                by_name.pop(reported.name, None)
        for name in answer.removed:
            by_name.pop(name, None)
        return Hosts(
            answer.version,
            tag,
            by_name,
            frozenset(answer.down),
            answer.interference,
        )


NOTHING = Hosts(None, None, {}, frozenset(), interference.Interference())

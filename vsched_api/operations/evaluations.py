# SPDX-License-Identifier: Apache-2.0

"""Evaluate on which hosts instances fit, without booting any.

The data and the arithmetic are those of the scheduler filters.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_api.db.queries import snapshot as queries
from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_api.operations import override_fields
from vsched_api.operations import stored
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import overriding
from vsched_lib.contract import wire
from vsched_lib.model import fit
from vsched_lib.model import room
from vsched_lib.model import score

LOG = logging.getLogger(__name__)

#: The components of the score, with equal weights. The weighers of the same
#: names compute them with multipliers of 1.
WEIGHED = ('headroom', 'allocation_error', 'io_overhead')


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """The evaluation of one host.

    :param down: its agent does not report.
    :param verdict: whether one instance fits.
    :param score: the sum of the normalised weights, more is better.
    :param weights: each before it was normalised; None when not known.
    """

    name: str
    down: bool
    verdict: room.Verdict
    score: float
    weights: Mapping[str, float | None]


@dataclasses.dataclass(frozen=True, slots=True)
class Evaluation:
    """The evaluation of all hosts.

    :param hosts: those that fit first, in descending order of their scores.
    :param room: how many instances fit in total; None when there is no limit.
    :param placed: how many of the requested instances each host gets.
    """

    hosts: Sequence[Host]
    room: int | None
    placed: Mapping[str, int]


class Evaluations:
    """Evaluates hosts for one application. Safe from any thread."""

    def __init__(self, database: db.Database, conf: cfg.ConfigOpts) -> None:
        self._database = database
        self._down_after_s = conf.api.host_down_after_s
        # Parsed hosts, each valid until its version changes.
        self._known: dict[str, _Known] = {}

    def flavor(
        self,
        specs: Mapping[str, str],
        vcpus: int,
        instances: int,
        now: float,
        names: Collection[str] | None = None,
        override: Mapping[str, ty.Any] | None = None,
    ) -> Evaluation:
        """Evaluate hosts for instances of a flavor.

        :param specs: the flavor's extra specs.
        :param names: evaluate these hosts only.
        :param override: the override of each instance, by the names of the
            REST API.
        :raises errors.Invalid: when no host could hold the extra specs or the
            override.
        :raises errors.NotFound: when one of the hosts is unknown.
        """
        try:
            wanted = (
                extra_specs.parse(specs)
                if override is None
                else overridden(specs, override, vcpus)
            )
            ask = wanted.ask(vcpus)
        except contract_errors.InvalidExtraSpecs as problem:
            raise errors.Invalid(problem.detail, problem.code) from None
        return self._evaluate(fit.Asking(ask).need, instances, now, names)

    def known(self, now: float) -> Mapping[str, fit.Host]:
        """Return all hosts whose stored data can be read, by name."""
        return {
            one.name: one.model
            for one in self._hosts(now, None)[0]
            if one.model is not None
        }

    def demand(
        self,
        demand_mcpu: int,
        instances: int,
        now: float,
        names: Collection[str] | None = None,
    ) -> Evaluation:
        """Evaluate hosts by their free capacity, whatever it is used for.

        :param names: evaluate these hosts only.
        :raises errors.NotFound: when one of the hosts is unknown.
        """
        need = fit.Need(demand_mcpu=demand_mcpu, guest_mcpu=demand_mcpu)
        return self._evaluate(lambda host: need, instances, now, names)

    def _evaluate(
        self,
        need: ty.Callable[[fit.Host], fit.Need],
        instances: int,
        now: float,
        names: Collection[str] | None,
    ) -> Evaluation:
        found, down = self._hosts(now, names)
        verdicts = [_verdict(one, need) for one in found]
        weights = [
            {
                'headroom': score.headroom(
                    one.need, one.free_mcpu, one.capacity_mcpu
                ),
                'allocation_error': score.allocation_error(one.need),
                'io_overhead': score.io_overhead(one.need),
            }
            for one in verdicts
        ]
        normal = [
            score.normal(score.neutral([one[name] for one in weights]))
            for name in WEIGHED
        ]
        hosts = [
            Host(
                one.name,
                one.name in down,
                verdict,
                sum(values[number] for values in normal),
                weights[number],
            )
            for number, (one, verdict) in enumerate(
                zip(found, verdicts, strict=True)
            )
        ]
        hosts.sort(
            key=lambda one: (not one.verdict.fits, -one.score, one.name)
        )
        rooms = [one.verdict.room for one in hosts]
        return Evaluation(
            hosts,
            None if None in rooms else sum(ty.cast(list[int], rooms)),
            _place(hosts, instances),
        )

    def _hosts(
        self, now: float, names: Collection[str] | None
    ) -> tuple[list['_Known'], frozenset[str]]:
        rows, down = self._database.read(
            lambda session: (
                queries.present(session, names),
                queries.down(session, now - self._down_after_s),
            )
        )
        missing = sorted(set(names or ()) - {row.name for row in rows})
        if missing:
            raise errors.NotFound(
                'hosts: nothing is known of %s' % ', '.join(missing),
                contract_errors.Code.HOST_NOT_FOUND,
            )
        return [self._read(row) for row in rows], frozenset(down)

    def _read(self, row: queries.Row) -> '_Known':
        known = self._known.get(row.name)
        if known is None or known.version != row.version:
            known = self._known[row.name] = _known(row)
        return known


@dataclasses.dataclass(frozen=True, slots=True)
class _Known:
    """The parsed data of a host.

    :param model: None when the data cannot be read; ``problem`` has the
        reason.
    """

    name: str
    version: int
    admitted_mcpu: int = 0
    model: fit.Host | None = None
    problem: str = ''


def _known(row: queries.Row) -> _Known:
    try:
        read = stored.read(row)
        return _Known(row.name, row.version, read.admitted_mcpu, read.fit())
    except wire.MalformedMessage as problem:
        LOG.error('Host %s cannot be evaluated: %s', row.name, problem)
        return _Known(row.name, row.version, problem=str(problem))


def overridden(
    specs: Mapping[str, str], override: Mapping[str, ty.Any], vcpus: int
) -> extra_specs.FlavorSpec:
    """Merge an override into the extra specs of a flavor.

    :param specs: the flavor's extra specs.
    :param override: by the names of the REST API.
    :raises errors.Invalid: when the override is invalid.
    :raises contract_errors.InvalidExtraSpecs: when the extra specs are
        invalid, by themselves or with the override.
    """
    wanted = dict(override_fields.DEFAULTS)
    own = extra_specs.parse(specs).reservation
    if own is not None:
        wanted.update(
            (name, getattr(own, name)) for name in override_fields.RESERVATION
        )
    wanted.update(
        (name, override[name])
        for name in override_fields.RESERVATION
        if name in override
    )
    if 'runtime_us' not in wanted:
        raise errors.Invalid(
            'override.runtime_us: required, because the extra specs ask for '
            'no reservation'
        )
    return extra_specs.parse(
        overriding.merged(
            specs,
            override_fields.reservation_of(wanted),
            override_fields.specs_of(override, None, vcpus),
        )
    )


def _verdict(
    known: _Known, need: ty.Callable[[fit.Host], fit.Need]
) -> room.Verdict:
    """Evaluate one host; unreadable data of it is a verdict, not an error."""
    if known.model is None:
        return room.Verdict(
            fit.Need(
                problems=(
                    fit.Problem(
                        fit.Cause.UNREADABLE,
                        'what is stored of it cannot be read: '
                        + known.problem,
                    ),
                )
            ),
            0,
            0,
        )
    return room.Verdict(
        need(known.model),
        known.model.capacity_mcpu,
        known.model.capacity_mcpu - known.admitted_mcpu,
    )


def _place(hosts: Sequence[Host], instances: int) -> dict[str, int]:
    """Place each instance on the host with the best remaining score.

    Hosts are compared again after each instance, as nova-scheduler does: an
    instance reduces the headroom of its host.

    :param hosts: the best first.
    """
    # Each of them has room for one at least.
    able = [one for one in hosts if one.verdict.fits and not one.down]
    able = able[:instances]
    # The headroom part of the score changes, the rest does not.
    first = dict(
        zip(
            (one.name for one in hosts),
            score.normal([one.weights['headroom'] or 0.0 for one in hosts]),
            strict=True,
        )
    )
    rest = [one.score - first[one.name] for one in able]
    headroom = [one.weights['headroom'] or 0.0 for one in able]
    rooms = [one.verdict.room for one in able]
    count = [0] * len(able)
    left = list(range(len(able)))
    for _ in range(instances):
        if not left:
            break
        worth = score.normal([headroom[number] for number in left])
        best = max(
            range(len(left)), key=lambda one: worth[one] + rest[left[one]]
        )
        number = left[best]
        count[number] += 1
        verdict = able[number].verdict
        headroom[number] -= verdict.need.demand_mcpu / max(
            1, verdict.capacity_mcpu
        )
        if count[number] == rooms[number]:
            left.remove(number)
    return {
        one.name: number
        for one, number in zip(able, count, strict=True)
        if number
    }

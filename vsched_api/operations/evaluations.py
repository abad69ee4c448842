# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Where instances would fit, and why not elsewhere; nothing is booted.

The answer comes from what schedulers are told, by the same arithmetic.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import json
import typing as ty

from oslo_config import cfg

from vsched_api.db.queries import snapshot as queries
from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import snapshot
from vsched_lib.model import fit
from vsched_lib.model import room
from vsched_lib.model import score

#: What counts for the score, each as much as the others; it is what the
#: weighers of the same names do with multipliers of 1.
WEIGHED = ('headroom', 'allocation_error', 'io_overhead')


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """What was found of one host.

    :param down: its agent does not report.
    :param verdict: on one instance.
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
    """What was found.

    :param hosts: those that fit first, the better ones before the others.
    :param room: how many instances fit in all; None when there is no limit.
    :param placed: how many of those asked for would come to which host.
    """

    hosts: Sequence[Host]
    room: int | None
    placed: Mapping[str, int]


class Evaluations:
    """Evaluates for one application. Safe from any thread."""

    def __init__(self, database: db.Database, conf: cfg.ConfigOpts) -> None:
        self._database = database
        self._policy = fit.Policy(
            round(conf.snapshot.max_margin_pct * 10_000),
            round(conf.snapshot.max_overhead_pct * 10_000))
        self._down_after_s = conf.api.host_down_after_s
        # What was read of a host stays as it is until it changes.
        self._known: dict[str, tuple[int, snapshot.Host, fit.Host]] = {}

    def flavor(self, specs: Mapping[str, str], vcpus: int, instances: int,
               now: float, names: Collection[str] | None = None,
               ) -> Evaluation:
        """Where instances of a flavor would fit.

        :param specs: the flavor's extra specs.
        :param names: only on these hosts.
        :raises errors.Invalid: when the extra specs ask for nothing a host
            could give.
        :raises errors.NotFound: when nothing is known of one of the hosts.
        """
        try:
            ask = extra_specs.parse(specs).ask(vcpus)
        except contract_errors.InvalidExtraSpecs as problem:
            raise errors.Invalid(
                problem.detail,
                contract_errors.Code.EXTRA_SPECS_INVALID) from None
        return self._evaluate(
            fit.Asking(ask).need, instances, now, names)

    def demand(self, demand_mcpu: int, instances: int, now: float,
               names: Collection[str] | None = None) -> Evaluation:
        """Where there is as much left, whatever it is for.

        :param names: only on these hosts.
        :raises errors.NotFound: when nothing is known of one of the hosts.
        """
        need = fit.Need(demand_mcpu=demand_mcpu, guest_mcpu=demand_mcpu)
        return self._evaluate(lambda host: need, instances, now, names)

    def _evaluate(self, need: ty.Callable[[fit.Host], fit.Need],
                  instances: int, now: float,
                  names: Collection[str] | None) -> Evaluation:
        found, down = self._hosts(now, names)
        verdicts = [room.Verdict(
            need(model), model.capacity_mcpu,
            model.capacity_mcpu - told.admitted_mcpu)
            for told, model in found]
        weights = [
            {'headroom': score.headroom(
                one.need, one.free_mcpu, one.capacity_mcpu),
             'allocation_error': score.allocation_error(one.need),
             'io_overhead': score.io_overhead(one.need)}
            for one in verdicts]
        normal = [score.normal(score.neutral([one[name] for one in weights]))
                  for name in WEIGHED]
        hosts = [
            Host(told.name, told.name in down, verdict, sum(
                values[number] for values in normal), weights[number])
            for number, ((told, _), verdict) in enumerate(
                zip(found, verdicts, strict=True))]
        hosts.sort(key=lambda one: (
            not one.verdict.fits, -one.score, one.name))
        rooms = [one.verdict.room for one in hosts]
        return Evaluation(
            hosts, None if None in rooms else sum(
                ty.cast(list[int], rooms)), _place(hosts, instances))

    def _hosts(self, now: float, names: Collection[str] | None,
               ) -> tuple[list[tuple[snapshot.Host, fit.Host]],
                          frozenset[str]]:
        rows, down = self._database.read(lambda session: (
            queries.present(session, names),
            queries.down(session, now - self._down_after_s)))
        missing = sorted(set(names or ()) - {row.name for row in rows})
        if missing:
            raise errors.NotFound(
                'hosts: nothing is known of %s' % ', '.join(missing),
                contract_errors.Code.HOST_NOT_FOUND)
        return [self._read(row) for row in rows], frozenset(down)

    def _read(self, row: queries.Row) -> tuple[snapshot.Host, fit.Host]:
        known = self._known.get(row.name)
        if known is None or known[0] != row.version:
            told = snapshot.Host.from_dict({
                'name': row.name, 'version': row.version,
                'admitted_mcpu': row.admitted_mcpu,
                'facts': json.loads(row.facts),
                'certificates': json.loads(
                    row.certificates) if row.certified else [],
                'prices_ns': json.loads(row.prices_ns or 'null')})
            known = self._known[row.name] = (
                row.version, told, told.fit(self._policy))
        return known[1:]


def _place(hosts: Sequence[Host], instances: int) -> dict[str, int]:
    """Give each instance to the host that is best by then.

    As nova-scheduler would: one that was given an instance has less
    headroom, and hosts are compared anew.

    :param hosts: the best first.
    """
    # Each of them takes one at least.
    able = [one for one in hosts if one.verdict.fits and not one.down]
    able = able[:instances]
    # Of the score that part which stays.
    first = dict(zip((one.name for one in hosts), score.normal(
        [one.weights['headroom'] or 0.0 for one in hosts]), strict=True))
    rest = [one.score - first[one.name] for one in able]
    headroom = [one.weights['headroom'] or 0.0 for one in able]
    rooms = [one.verdict.room for one in able]
    count = [0] * len(able)
    left = list(range(len(able)))
    for _ in range(instances):
        if not left:
            break
        worth = score.normal([headroom[number] for number in left])
        best = max(range(len(left)),
                   key=lambda one: worth[one] + rest[left[one]])
        number = left[best]
        count[number] += 1
        verdict = able[number].verdict
        headroom[number] -= verdict.need.demand_mcpu / max(
            1, verdict.capacity_mcpu)
        if count[number] == rooms[number]:
            left.remove(number)
    return {one.name: number for one, number in zip(
        able, count, strict=True) if number}

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

"""What an instance should have: its own metadata, or what the API says."""

import dataclasses

from vsched_agent.hypervisor import base
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages
from vsched_lib.model import fit
from vsched_lib.model import reservation


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """The reservation an instance should have.

    :param promise: None when it should have none, or when what was asked
        can not be read.
    :param source: who asks.
    :param generation: of the override, 0 for metadata.
    :param problem: why what was asked can not be read; the instance then
        keeps what it has.
    :param io_charging: who pays for the host's work on its I/O.
    :param ask: what its flavor asks of a host besides the promise.
    """

    promise: reservation.Reservation | None
    source: messages.Source
    generation: int = 0
    problem: errors.VschedError | None = None
    io_charging: extra_specs.IoCharging = extra_specs.IoCharging.NONE
    ask: fit.Ask = fit.Ask(0)


CHARGE = extra_specs.IoCharging.CHARGE
NOTHING = Wanted(None, messages.Source.NONE)


def by_override(override: messages.Override) -> Wanted:
    """What an operator asked for over the flavor."""
    try:
        promise = reservation.Reservation(
            override.runtime_us, override.period_us,
            reservation.Mode(override.mode),
            reservation.Backend(override.backend)
            if override.backend else None)
    except ValueError as problem:
        return Wanted(
            None, messages.Source.OVERRIDE, override.generation,
            errors.VschedError(str(problem), errors.Code.RESERVATION_INVALID))
    return Wanted(promise, messages.Source.OVERRIDE, override.generation)


def by_metadata(domain: base.Domain) -> Wanted:
    """What the instance's own metadata asks for."""
    if domain.metadata_problem:
        return Wanted(
            None, messages.Source.METADATA, problem=errors.VschedError(
                domain.metadata_problem, errors.Code.EXTRA_SPECS_INVALID))
    try:
        spec = extra_specs.parse(domain.extra_specs)
    except errors.InvalidExtraSpecs as problem:
        return Wanted(None, messages.Source.METADATA, problem=problem)
    if spec.reservation is None:
        return NOTHING
    return Wanted(spec.reservation, messages.Source.METADATA,
                  io_charging=extra_specs.IoCharging(
                      str(spec.values['io_charging'])),
                  ask=dataclasses.replace(spec.ask(0), promise=None))


def of(domain: base.Domain, override: messages.Override | None) -> Wanted:
    """The override when there is one, else the metadata."""
    if override is not None:
        wanted = by_override(override)
        if wanted.promise is None:
            return wanted
        # Another share is another figure, not another quality.
        own = by_metadata(domain)
        return dataclasses.replace(
            wanted, io_charging=own.io_charging, ask=own.ask)
    return by_metadata(domain)


def workload_class(domain: base.Domain) -> str | None:
    """What the instance mostly does, if its metadata says so legibly."""
    spec = extra_specs.TABLE['workload_class']
    try:
        return str(spec.parse(domain.extra_specs.get(spec.name)))
    except ValueError:
        return None

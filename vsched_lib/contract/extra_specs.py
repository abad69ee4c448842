# SPDX-License-Identifier: Apache-2.0

"""The one table of flavor extra specs.

Validators, the agent's parser, the documentation and the command line all
derive from :data:`TABLE`; the keys are nowhere else.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from decimal import Decimal
import enum
import typing as ty

from vsched_lib.contract import errors
from vsched_lib.contract import spec_values
from vsched_lib.model import fit
from vsched_lib.model import overhead
from vsched_lib.model import reservation


class IoCharging(enum.StrEnum):
    """How the host's work on an instance's I/O is charged."""

    AUTO = 'auto'
    CHARGE = 'charge'
    OVERPROVISION = 'overprovision'
    NONE = 'none'


class Balloon(enum.StrEnum):
    """Whether the agent may take vCPUs offline."""

    OFF = 'off'
    AUTO = 'auto'


class WorkloadClass(enum.StrEnum):
    """What an instance mostly does, for interference-aware placement."""

    COMPUTE = 'compute'
    BANDWIDTH = 'bandwidth'
    DISK = 'disk'
    TRANSACTIONAL = 'transactional'
    WEB = 'web'


def _integer(
    key: str,
    minimum: int,
    maximum: int,
    text: str,
    default: int | None = None,
    needs: str | None = None,
) -> spec_values.ExtraSpec:
    return spec_values.ExtraSpec(
        key,
        spec_values.Type.INTEGER,
        text,
        minimum,
        maximum,
        default=default,
        needs=needs,
    )


def _choice(
    key: str,
    choices: type[enum.StrEnum],
    text: str,
    default: str | None = None,
    needs: str | None = None,
    unavailable: Iterable[str] = (),
) -> spec_values.ExtraSpec:
    return spec_values.ExtraSpec(
        key,
        spec_values.Type.CHOICE,
        text,
        choices=tuple(choices),
        default=default,
        needs=needs,
        unavailable=frozenset(map(str, unavailable)),
    )


_RUNTIME = 'cpu_runtime_us'

_SPECS = (
    _integer(
        _RUNTIME,
        2,
        4_194_304,
        'CPU time reserved for each vCPU in every period, in microseconds. '
        'Without it the instance has no reservation.',
    ),
    _integer(
        'cpu_period_us',
        100,
        4_194_304,
        'Length of the period, in microseconds. At most as long as the '
        'guest can go without the CPU.',
        default=20_000,
        needs=_RUNTIME,
    ),
    _choice(
        'cpu_mode',
        reservation.Mode,
        'capped: the runtime is guarantee and cap. work_conserving: it is '
        'a guarantee and idle CPU time may be used as well.',
        default=str(reservation.Mode.CAPPED),
        needs=_RUNTIME,
    ),
    _choice(
        'backend',
        reservation.Backend,
        'The mechanism that must enforce the reservation. Without it the '
        'best one that the host has.',
        needs=_RUNTIME,
    ),
    _choice(
        'io_charging',
        IoCharging,
        "Who pays for the host's work on the instance's I/O. auto: the "
        "host's threads for it get a reservation out of capacity that no "
        'instance has claimed, and lose it when it is claimed. charge: the '
        'guest and the threads share the reservation. overprovision: the '
        'threads get a reservation on top of it. none: they are neither held '
        'nor charged.',
        default=str(IoCharging.AUTO),
        needs=_RUNTIME,
    ),
    _integer(
        'net_rx_pps',
        0,
        100_000_000,
        'Packets per second the instance is expected to receive.',
    ),
    _integer(
        'net_tx_pps',
        0,
        100_000_000,
        'Packets per second the instance is expected to send.',
    ),
    _integer(
        'disk_read_iops',
        0,
        100_000_000,
        'Disk reads per second the instance is expected to issue.',
    ),
    _integer(
        'disk_write_iops',
        0,
        100_000_000,
        'Disk writes per second the instance is expected to issue.',
    ),
    spec_values.ExtraSpec(
        'max_alloc_error_pct',
        spec_values.Type.DECIMAL,
        'Largest error of the CPU time given in one second, in percent of '
        'the reservation, that a host may have shown.',
        Decimal('0.1'),
        Decimal(100),
        needs=_RUNTIME,
    ),
    _choice(
        'balloon',
        Balloon,
        'Whether vCPUs may be taken offline while they only wait for each '
        'other.',
        default=str(Balloon.OFF),
    ),
    _integer(
        'min_vcpus',
        1,
        1024,
        'Fewest vCPUs that ballooning leaves online.',
        default=1,
        needs='balloon',
    ),
    _integer(
        'weight',
        1,
        10_000,
        'Share of the CPUs relative to other instances when ballooning '
        'divides them.',
        default=100,
    ),
    spec_values.ExtraSpec(
        'comm_aware',
        spec_values.Type.BOOLEAN,
        'Whether runtime and period are divided by the same number while '
        'the instance waits on packets. Its bandwidth stays the same.',
        default=True,
        needs=_RUNTIME,
    ),
    _choice(
        'workload_class',
        WorkloadClass,
        'What the instance mostly does; placement avoids neighbours that '
        'disturb it.',
    ),
)

#: Every key vsched understands, by its name without the namespace.
TABLE: Mapping[str, spec_values.ExtraSpec] = {
    spec.key: spec for spec in _SPECS
}

#: Keys that an operator may set over the flavor's, besides the reservation.
OVERRIDABLE = (
    'io_charging',
    'max_alloc_error_pct',
    'balloon',
    'min_vcpus',
    'weight',
    'comm_aware',
)


@dataclasses.dataclass(frozen=True, slots=True)
class FlavorSpec:
    """What a set of extra specs requests.

    :param reservation: of each vCPU, or None.
    :param values: every key of the table with its value or default; None
        where it is absent and has no default.
    """

    reservation: reservation.Reservation | None
    values: Mapping[str, spec_values.Value | None]

    def ask(self, vcpus: int) -> fit.Ask:
        """Return what an instance of the flavor needs of a host."""
        values: Mapping[str, ty.Any] = self.values
        bound_pct = values['max_alloc_error_pct']
        word = values['workload_class']
        return fit.Ask(
            vcpus,
            self.reservation,
            None if bound_pct is None else int(bound_pct * 10_000),
            overhead.Rates(
                **{
                    field.name: values[field.name] or 0
                    for field in dataclasses.fields(overhead.Rates)
                }
            ),
            _CHARGED[IoCharging(values['io_charging'])],
            None if word is None else str(word),
        )


_CHARGED = {
    # It claims nothing.
    IoCharging.AUTO: None,
    IoCharging.CHARGE: True,
    IoCharging.OVERPROVISION: False,
    IoCharging.NONE: None,
}


def parse(extra_specs: Mapping[str, object]) -> FlavorSpec:
    """Read the keys of our namespace; leave all others alone.

    Nova validates each key by itself and nothing below microversion 2.86,
    so this checks every key again and the rules between keys.

    :param extra_specs: full names to text, as a flavor holds them.
    :raises errors.InvalidExtraSpecs: with every problem found.
    """
    given: dict[str, spec_values.Value] = {}
    problems: list[tuple[str, str]] = []
    unavailable = 0
    for name in sorted(extra_specs):
        if not name.startswith(spec_values.PREFIX):
            continue
        key = name[len(spec_values.PREFIX) :]
        spec = TABLE.get(key)
        if spec is None:
            problems.append(
                (
                    spec_values.PREFIX + spec_values.cut(ascii(key)[1:-1]),
                    'is not known; known: %s' % ', '.join(TABLE),
                )
            )
            continue
        try:
            given[key] = spec.parse(extra_specs[name])
        except spec_values.Unavailable as problem:
            unavailable += 1
            problems.append((spec.name, str(problem)))
        except ValueError as problem:
            problems.append((spec.name, str(problem)))
    for key in given:
        needs = TABLE[key].needs
        if needs and spec_values.PREFIX + needs not in extra_specs:
            problems.append(
                (
                    spec_values.PREFIX + key,
                    'has no meaning without %s' % TABLE[needs].name,
                )
            )
    values = {key: given.get(key, spec.default) for key, spec in TABLE.items()}
    reserved = None
    if not problems:
        reserved = _reservation(values, problems)
        if given.get('balloon') == Balloon.OFF and 'min_vcpus' in given:
            problems.append(
                (
                    spec_values.PREFIX + 'min_vcpus',
                    'conflicts with %s=off' % (TABLE['balloon'].name),
                )
            )
    if problems:
        raise errors.InvalidExtraSpecs(
            problems,
            errors.Code.EXTRA_SPECS_UNAVAILABLE
            if unavailable == len(problems)
            else None,
        )
    return FlavorSpec(reserved, values)


def _reservation(
    values: Mapping[str, ty.Any], problems: list[tuple[str, str]]
) -> reservation.Reservation | None:
    if values[_RUNTIME] is None:
        return None
    try:
        reserved = reservation.Reservation(
            values[_RUNTIME],
            values['cpu_period_us'],
            values['cpu_mode'],
            values['backend'],
        )
    except reservation.InvalidReservation as problem:
        problems.append((TABLE[_RUNTIME].name, problem.detail))
        return None
    if reserved.backend in reservation.LIMITS:
        problems.extend(
            (TABLE['backend'].name, text)
            for text in reserved.problems(
                ty.cast(reservation.Backend, reserved.backend)
            )
        )
    return reserved


def render(reserved: reservation.Reservation) -> dict[str, str]:
    """Return the extra specs of a reservation; the inverse of parse."""
    specs = {
        _RUNTIME: str(reserved.runtime_us),
        'cpu_period_us': str(reserved.period_us),
        'cpu_mode': str(reserved.mode),
    }
    if reserved.backend is not None:
        specs['backend'] = str(reserved.backend)
    return {TABLE[key].name: text for key, text in specs.items()}

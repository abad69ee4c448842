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
import re
import typing as ty

from vsched_lib.contract import errors
from vsched_lib.model import fit
from vsched_lib.model import overhead
from vsched_lib.model import reservation

NAMESPACE = 'vsched'
PREFIX = NAMESPACE + ':'

#: Longest text of a value: far above any valid one, and small enough to
#: quote in an event.
MAX_VALUE_CHARS = 64

Value = int | bool | str | Decimal


class Type(enum.StrEnum):
    """How the text of a value is read."""

    INTEGER = 'integer'
    DECIMAL = 'decimal'
    BOOLEAN = 'boolean'
    CHOICE = 'choice'


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


@dataclasses.dataclass(frozen=True, slots=True)
class ExtraSpec:
    """One key of the table.

    :param key: name without the namespace; its unit is in the name.
    :param type: how the text is read.
    :param help: one sentence for an operator.
    :param minimum: smallest number accepted.
    :param maximum: largest number accepted.
    :param choices: words accepted.
    :param default: value when it is absent; None for no value.
    :param needs: another key without which this one has no meaning.
    :param unavailable: values that are declared but not implemented in this
        release; they are refused.
    """

    key: str
    type: Type
    help: str
    minimum: int | Decimal | None = None
    maximum: int | Decimal | None = None
    choices: tuple[str, ...] = ()
    default: Value | None = None
    needs: str | None = None
    unavailable: frozenset[str] = frozenset()

    @property
    def available(self) -> tuple[str, ...]:
        """The words accepted, of a choice or a boolean."""
        words = (
            ('true', 'false') if self.type is Type.BOOLEAN else (self.choices)
        )
        return tuple(word for word in words if word not in self.unavailable)

    @property
    def name(self) -> str:
        """The key as a flavor carries it."""
        return PREFIX + self.key

    @property
    def accepted(self) -> str:
        """Description of the accepted values."""
        if self.type is Type.CHOICE:
            return 'one of %s' % ', '.join(self.available)
        if self.type is Type.BOOLEAN:
            return ' or '.join(self.available)
        kind = 'a whole number' if self.type is Type.INTEGER else 'a number'
        return '%s from %s to %s' % (kind, self.minimum, self.maximum)

    def parse(self, text: object) -> Value:
        """Read one value.

        :param text: what the flavor holds.
        :returns: the value in the spec's own type.
        :raises Unavailable: for a value that is not implemented yet.
        :raises ValueError: naming the text and what is accepted.
        """
        if not isinstance(text, str):
            raise ValueError(
                '%s is not text; accepted: %s' % (_quote(text), self.accepted)
            )
        value: Value | None = None
        if len(text) > MAX_VALUE_CHARS:
            pass
        elif self.type is Type.CHOICE:
            value = text if text in self.choices else None
        elif self.type is Type.BOOLEAN:
            value = {'true': True, 'false': False}.get(text.lower())
        elif self.type is Type.INTEGER:
            value = _within(self, int(text)) if _INTEGER.match(text) else None
        elif _DECIMAL.match(text):
            value = _within(self, Decimal(text))
        if value is None:
            raise ValueError(
                '%s is not accepted; accepted: %s'
                % (_quote(text), self.accepted)
            )
        if str(value).lower() in self.unavailable:
            raise Unavailable(
                '%s is not available in this release; '
                'accepted: %s' % (_quote(str(text)), self.accepted)
            )
        return value


class Unavailable(ValueError):
    """A value that is declared and not implemented yet."""


# ASCII digits only: int() would accept any script's digits, signs, blanks
# and underscores.
_INTEGER = re.compile(r'[0-9]{1,18}\Z', re.ASCII)
_DECIMAL = re.compile(r'[0-9]{1,9}(\.[0-9]{1,9})?\Z', re.ASCII)


def _within(spec: ExtraSpec, number: ty.Any) -> ty.Any:
    return number if spec.minimum <= number <= spec.maximum else None


def _cut(text: str) -> str:
    if len(text) > MAX_VALUE_CHARS:
        text = text[:MAX_VALUE_CHARS] + '...'
    return text


def _quote(value: object) -> str:
    return _cut(ascii(value))


def _integer(
    key: str,
    minimum: int,
    maximum: int,
    text: str,
    default: int | None = None,
    needs: str | None = None,
) -> ExtraSpec:
    return ExtraSpec(
        key, Type.INTEGER, text, minimum, maximum, default=default, needs=needs
    )


def _choice(
    key: str,
    choices: type[enum.StrEnum],
    text: str,
    default: str | None = None,
    needs: str | None = None,
    unavailable: Iterable[str] = (),
) -> ExtraSpec:
    return ExtraSpec(
        key,
        Type.CHOICE,
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
    ExtraSpec(
        'max_alloc_error_pct',
        Type.DECIMAL,
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
    ExtraSpec(
        'comm_aware',
        Type.BOOLEAN,
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
TABLE: Mapping[str, ExtraSpec] = {spec.key: spec for spec in _SPECS}

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
    values: Mapping[str, Value | None]

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
    given: dict[str, Value] = {}
    problems: list[tuple[str, str]] = []
    unavailable = 0
    for name in sorted(extra_specs):
        if not name.startswith(PREFIX):
            continue
        key = name[len(PREFIX) :]
        spec = TABLE.get(key)
        if spec is None:
            problems.append(
                (
                    PREFIX + _cut(ascii(key)[1:-1]),
                    'is not known; known: %s' % ', '.join(TABLE),
                )
            )
            continue
        try:
            given[key] = spec.parse(extra_specs[name])
        except Unavailable as problem:
            unavailable += 1
            problems.append((spec.name, str(problem)))
        except ValueError as problem:
            problems.append((spec.name, str(problem)))
    for key in given:
        needs = TABLE[key].needs
        if needs and PREFIX + needs not in extra_specs:
            problems.append(
                (PREFIX + key, 'has no meaning without %s' % TABLE[needs].name)
            )
    values = {key: given.get(key, spec.default) for key, spec in TABLE.items()}
    reserved = None
    if not problems:
        reserved = _reservation(values, problems)
        if given.get('balloon') == Balloon.OFF and 'min_vcpus' in given:
            problems.append(
                (
                    PREFIX + 'min_vcpus',
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

# SPDX-License-Identifier: Apache-2.0

"""How the value of one extra spec is read; which there are is elsewhere.

See :data:`vsched_lib.contract.extra_specs.TABLE`.
"""

import dataclasses
from decimal import Decimal
import enum
import re
import typing as ty

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


def cut(text: str) -> str:
    """Return a text, cut at the longest one that is accepted."""
    if len(text) > MAX_VALUE_CHARS:
        text = text[:MAX_VALUE_CHARS] + '...'
    return text


def _quote(value: object) -> str:
    return cut(ascii(value))

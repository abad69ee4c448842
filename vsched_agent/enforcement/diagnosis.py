# SPDX-License-Identifier: Apache-2.0

"""What checks of a host find, and how it is shown."""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
import enum


class Level(enum.StrEnum):
    """Severity of a finding."""

    OK = 'ok'
    NOTE = 'note'
    PROBLEM = 'problem'


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One result of the doctor.

    :param level: its severity.
    :param subject: what was checked.
    :param text: the result, with figures.
    :param remedy: what an operator can do about it.
    """

    level: Level
    subject: str
    text: str
    remedy: str = ''

    def to_dict(self) -> dict[str, str]:
        """Return the finding in JSON types."""
        return {
            field.name: str(getattr(self, field.name))
            for field in dataclasses.fields(self)
        }


#: Returns what it found.
Check = Callable[[], Iterable[Finding]]


def render(findings: Iterable[Finding]) -> str:
    """Return the findings as text for a terminal."""
    lines = []
    for one in findings:
        lines.append(
            '%-8s %-12s %s' % (one.level.upper(), one.subject, one.text)
        )
        if one.remedy:
            lines.append('%-21s -> %s' % ('', one.remedy))
    return '\n'.join(lines)

# SPDX-License-Identifier: Apache-2.0

"""Values that the parts of communication awareness exchange."""

import dataclasses
import typing as ty

from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import granularity


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The options of [communication].

    :param policy: when periods are divided.
    :param window_s: length of the window whose longest request counts.
    :param enabled: whether any period is divided.
    """

    policy: granularity.Policy = dataclasses.field(
        default_factory=granularity.Policy
    )
    window_s: float = 10.0
    enabled: bool = True


class Event(ty.NamedTuple):
    """An event to report about an instance.

    :param detail: one sentence, without the instance's name.
    """

    code: errors.Code
    severity: messages.Severity
    detail: str
    figures: dict[str, ty.Any]


class Change(ty.NamedTuple):
    """A change of an instance's granularity that is to be reported.

    :param report: its present state; None when its periods are not to be
        divided.
    """

    uuid: str
    report: messages.CommunicationReport | None
    event: Event | None = None

# SPDX-License-Identifier: Apache-2.0

"""Store events of the collector itself, apart from those of hosts.

Events of the collector have UUIDs that follow from what they are about, so
that each is stored once. A host could send an event under the UUID of the next
one, which would then not be stored. So hosts' events never have such a UUID,
nor a code that only collector and REST service use.
"""

import dataclasses
import typing as ty
import uuid

from oslo_log import log as logging

from vsched_api.db import models
from vsched_api.db.queries import events
from vsched_lib.contract import errors
from vsched_lib.contract import messages

LOG = logging.getLogger(__name__)

# Namespace of the UUIDs of these events: repeated events get the same UUID.
_EVENTS = uuid.UUID('8c7b4a52-3a0e-4be3-9c6b-0f9a4f0f6a11')
_SECONDS_PER_HOUR = 3_600
# Where the version of a UUID is in its text.
_VERSION_AT = 14

#: Codes of events that no agent sends.
OWN = frozenset(
    (
        errors.Code.BALLOON_ORDERED,
        errors.Code.CLOCK_RIGHT,
        errors.Code.CLOCK_SKEWED,
        errors.Code.HOST_CONFIRMED,
        errors.Code.HOST_IMPLAUSIBLE,
        errors.Code.HOST_NOT_IN_NOVA,
        errors.Code.HOST_OVERSTATED,
        errors.Code.HOST_WRONG_PROVIDER,
        errors.Code.INSTANCE_FOREIGN,
        errors.Code.JOURNAL_NEW,
        errors.Code.JOURNAL_REPLACED,
        errors.Code.OVERRIDE_REMOVED,
        errors.Code.OVERRIDE_SET,
        errors.Code.REPORT_REJECTED,
    )
)


def event_uuid(*parts: object) -> str:
    """Return the UUID of an event that is stored once for these parts."""
    return str(uuid.uuid5(_EVENTS, ascii(' '.join(map(str, parts)))))


def of_host(event: dict[str, ty.Any]) -> dict[str, ty.Any]:
    """Return an event of a host as it may be stored.

    One with a code of :data:`OWN` gets :attr:`errors.Code.UNDEFINED`, and its
    figures name the code.

    :param event: a ``messages.Event`` as a JSON object.
    """
    text = event['uuid']
    if text[_VERSION_AT] == '5':
        # Another one, and the same one each time.
        text = '%s4%s' % (text[:_VERSION_AT], text[_VERSION_AT + 1 :])
    if event['code'] in OWN:
        event = {
            **event,
            'code': errors.Code.UNDEFINED.value,
            'figures': {'code': event['code']},
        }
    return {**event, 'uuid': text}


@dataclasses.dataclass(frozen=True, slots=True)
class Notice:
    """An event of the collector about a host.

    :param at: seconds since the epoch.
    """

    host: models.Host
    at: float
    code: errors.Code
    severity: messages.Severity
    detail: str
    figures: dict[str, ty.Any]


def add(session: ty.Any, notice: Notice) -> None:
    """Store and log an event about a host, once an hour."""
    host, code = notice.host, notice.code
    if events.add(
        session,
        [
            {
                'host_id': host.id,
                'uuid': event_uuid(
                    host.name, code.value, int(notice.at // _SECONDS_PER_HOUR)
                ),
                'at': notice.at,
                'code': code.value,
                'severity': notice.severity.value,
                'detail': notice.detail,
                'instance_uuid': None,
                'figures': notice.figures,
            }
        ],
    ):
        LOG.warning('Host %s: %s', host.name, notice.detail)

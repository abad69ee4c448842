# SPDX-License-Identifier: Apache-2.0

"""Store events of the collector itself."""

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


def event_uuid(*parts: object) -> str:
    """Return the UUID of an event that is stored once for these parts."""
    return str(uuid.uuid5(_EVENTS, ascii(' '.join(map(str, parts)))))


def add(
    session: ty.Any,
    host: models.Host,
    now: float,
    code: errors.Code,
    severity: messages.Severity,
    detail: str,
    figures: dict[str, ty.Any],
) -> None:
    """Store and log an event about a host, once an hour."""
    if events.add(
        session,
        [
            {
                'host_id': host.id,
                'uuid': event_uuid(
                    host.name, code.value, int(now // _SECONDS_PER_HOUR)
                ),
                'at': now,
                'code': code.value,
                'severity': severity.value,
                'detail': detail,
                'instance_uuid': None,
                'figures': figures,
            }
        ],
    ):
        LOG.warning('Host %s: %s', host.name, detail)

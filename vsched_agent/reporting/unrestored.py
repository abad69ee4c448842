# SPDX-License-Identifier: Apache-2.0

"""Reports instances whose former state does not fit on the host any more."""

import time

from vsched_agent.enforcement import base
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.reporting import events as reporting
from vsched_agent.state import store as journals
from vsched_lib.contract import errors
from vsched_lib.contract import messages


def add(
    events: reporting.Events,
    domain: hypervisor.Domain,
    error: base.NotRestored,
) -> None:
    """Add the event of one instance.

    :param events: those that wait for a batch.
    """
    events.add(
        errors.Code.RESTORE_INCOMPLETE,
        messages.Severity.WARNING,
        '%s: %s' % (domain.name, error),
        domain.uuid,
        error.figures,
    )


def post(
    events: reporting.Events, host: str, journal: journals.Journal
) -> None:
    """Have the next agent send events: the reporting of this one has ended.

    :param events: are empty afterwards.
    :param host: this host's name.
    """
    waiting = tuple(events.take())
    if waiting:
        journal.outbox.post(
            lambda batch: messages.Report(
                host=host, batch=batch, at=time.time(), events=waiting
            )
        )

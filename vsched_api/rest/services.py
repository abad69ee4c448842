# SPDX-License-Identifier: Apache-2.0

"""What the handlers of one application work with."""

from collections.abc import Callable
import dataclasses
import typing as ty

import flask
from oslo_config import cfg

from vsched_api.db import session as db
from vsched_api.operations import announcements
from vsched_api.operations import evaluations
from vsched_api.operations import snapshot
from vsched_api.rest import request_metrics
from vsched_api.rest import scrape_tokens

_KEY = 'vsched'


@dataclasses.dataclass(frozen=True, slots=True)
class Services:
    """One application's own; nothing of it is global.

    :param enforcer: an ``oslo_policy.policy.Enforcer``.
    :param now: seconds since the epoch.
    """

    conf: cfg.ConfigOpts
    database: db.Database
    announcer: announcements.Announcer
    snapshots: snapshot.Snapshots
    evaluations: evaluations.Evaluations
    enforcer: ty.Any
    requests: request_metrics.RequestMetrics
    scrapers: scrape_tokens.ScrapeTokens
    now: Callable[[], float]


def attach(app: flask.Flask, services: Services) -> None:
    """Give them to an application."""
    app.extensions[_KEY] = services


def current() -> Services:
    """Those of the application that handles this request."""
    return ty.cast(Services, flask.current_app.extensions[_KEY])

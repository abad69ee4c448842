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
    now: Callable[[], float]


def attach(app: flask.Flask, services: Services) -> None:
    """Give them to an application."""
    app.extensions[_KEY] = services


def current() -> Services:
    """Those of the application that handles this request."""
    return ty.cast(Services, flask.current_app.extensions[_KEY])

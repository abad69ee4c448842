# SPDX-License-Identifier: Apache-2.0

"""Whether the service can do its work now.

Whether the process serves at all, ``/healthcheck``, is oslo.middleware's to
say, see :mod:`vsched_api.app`. That queries the database only where
``[healthcheck] backends`` names :class:`DatabaseHealthcheck`.
"""

import typing as ty

import flask
from oslo_config import cfg
from oslo_middleware.healthcheck import pluginbase

from vsched_api.db import errors as db_errors
from vsched_api.db import session as db
from vsched_api.operations import health
from vsched_api.policies import health as policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import fields
from vsched_api.schemas import health as schemas

BLUEPRINT = flask.Blueprint('health', __name__)


class DatabaseHealthcheck(pluginbase.HealthcheckBaseExtension):
    """oslo.middleware's check of the database: ``vsched_database``.

    It has a connection of its own, which is opened when it is first asked.

    :param oslo_conf: has the options of :mod:`vsched_api.conf`.
    :param conf: what a Paste file says; vsched uses none.
    """

    def __init__(
        self, oslo_conf: cfg.ConfigOpts, conf: dict[str, ty.Any]
    ) -> None:
        super().__init__(oslo_conf, conf)
        self._database = db.Database(oslo_conf)

    def healthcheck(self, server_port: int) -> pluginbase.HealthcheckResult:
        """Say whether the database answers and has our tables."""
        try:
            health.check(self._database)
        except db_errors.DatabaseUnavailable as problem:
            return pluginbase.HealthcheckResult(False, problem.detail)
        return pluginbase.HealthcheckResult(True, 'OK')


@BLUEPRINT.get('/readiness')
@documentation.operation(policies.SHOW, schemas.SHOW)
def show() -> dict[str, str]:
    """Check whether the service can do its work.

    200 when the database answers; otherwise 503 and why.
    """
    authorization.enforce(policies.SHOW)
    validation.query(fields.NOTHING)
    health.check(services.current().database)
    return {'status': 'ok', 'database': 'ok'}

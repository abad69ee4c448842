# SPDX-License-Identifier: Apache-2.0

"""The WSGI application.

What others may rely on (standalone, WSGI servers, tests)::

    vsched_api.conf.register_opts(conf)            options, before conf()
    vsched_api.db.migration.sync(conf)             create or upgrade tables
    vsched_api.app.create_app(conf, transport)     a Flask application
    vsched_api.collector.endpoint.Collector(conf)  endpoint for rpc.get_server
    vsched_api.collector.service.Service(conf, transport)
                                                   that server, and retention
"""

from collections.abc import Callable
import time
import typing as ty

import flask
from oslo_config import cfg
from oslo_middleware import cors
from oslo_middleware import healthcheck
from oslo_middleware import http_proxy_to_wsgi
from oslo_middleware import request_id
from oslo_policy import policy

from vsched_api.db import session as db
from vsched_api import nouns
from vsched_api.operations import announcements
from vsched_api.operations import evaluations
from vsched_api.operations import snapshot
from vsched_api import policies
from vsched_api import rest
from vsched_api.rest import authentication
from vsched_api.rest import authorization
from vsched_api.rest import errors
from vsched_api.rest import intake
from vsched_api.rest import microversion
from vsched_api.rest import request_metrics
from vsched_api.rest import scrape_tokens
from vsched_api.rest import services

LIVENESS = '/healthcheck'


def create_app(
    conf: cfg.ConfigOpts,
    transport: ty.Any = None,
    now: Callable[[], float] = time.time,
) -> flask.Flask:
    """Make an application; it opens no connection before a request.

    :param conf: has the options of :mod:`vsched_api.conf`, and was called.
    :param transport: the bus on which agents hear of changes at once; None
        leaves them to learn of changes from the reply to their next report.
    :param now: seconds since the epoch.
    """
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(policies.list_rules())
    app = flask.Flask('vsched_api', static_folder=None)
    app.config['MAX_CONTENT_LENGTH'] = conf.api.max_request_body_size
    # They would be answered without asking any policy.
    app.config['PROVIDE_AUTOMATIC_OPTIONS'] = False
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.url_map.strict_slashes = False
    # A redirect would name the host that the request names.
    app.url_map.merge_slashes = False
    database = db.Database(conf)
    counted = request_metrics.RequestMetrics()
    services.attach(
        app,
        services.Services(
            conf=conf,
            database=database,
            snapshots=snapshot.Snapshots(database, conf),
            evaluations=evaluations.Evaluations(database, conf),
            announcer=announcements.Announcer(transport),
            enforcer=enforcer,
            requests=counted,
            scrapers=scrape_tokens.ScrapeTokens(conf),
            now=now,
        ),
    )
    errors.register(app)
    for module in nouns.modules(rest.__name__):
        app.register_blueprint(module.BLUEPRINT)
    app.before_request(counted.note_route)
    # In this order: an unsupported version is refused before authentication.
    app.before_request(authentication.identify)
    app.before_request(microversion.negotiate)
    app.before_request(authorization.expect_enforcement)
    # Flask runs these last to first.
    app.after_request(microversion.announce)
    app.after_request(authorization.require_enforcement)
    _wrap(app, conf, counted)
    return app


def _wrap(
    app: flask.Flask,
    conf: cfg.ConfigOpts,
    counted: request_metrics.RequestMetrics,
) -> None:
    """Put the middleware around an application; the last is outermost."""
    wrapped: ty.Any = app.wsgi_app
    wrapped = authentication.middleware(wrapped, conf)
    wrapped = intake.Intake(wrapped, conf)
    # Before the token is checked, for the log of that to carry the number.
    wrapped = request_id.RequestId(wrapped)
    if conf.cors.allowed_origin:
        # Outside everything that answers: pages read errors as well, and
        # browsers ask before without a token.
        wrapped = cors.CORS(wrapped, conf)
    # Outside everything that looks at the address of the request.
    wrapped = http_proxy_to_wsgi.HTTPProxyToWSGI(wrapped, conf)
    # With the time that keystone takes; without checks by load balancers.
    wrapped = counted.wrap(wrapped)
    wrapped = _with_liveness(wrapped, conf)
    app.wsgi_app = wrapped  # type: ignore[method-assign]


def _with_liveness(app: ty.Any, conf: cfg.ConfigOpts) -> ty.Any:
    """Answer whether the process serves, without keystone or database."""
    alive = healthcheck.Healthcheck(None, conf)

    def dispatch(environ: dict[str, ty.Any], start: ty.Any) -> ty.Any:
        wanted = alive if environ.get('PATH_INFO') == LIVENESS else app
        return wanted(environ, start)

    return dispatch

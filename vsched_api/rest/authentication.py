# SPDX-License-Identifier: Apache-2.0

"""Who a request is from."""

import typing as ty

import flask
from oslo_config import cfg
from oslo_context import context

from vsched_api.rest import services

_NOBODY = 'noauth'

#: Where the environment of a request says why its token was not checked.
ENVIRON_PROBLEM = 'vsched.identity_problem'


def identify() -> None:
    """Keep who the request is from in ``flask.g.context``.

    keystonemiddleware puts it into the request's environment. Without it,
    by ``[api] auth_strategy = noauth``, everyone is an administrator.
    """
    environ = flask.request.environ
    flask.g.authenticated = True
    flask.g.identity_problem = None
    if services.current().conf.api.auth_strategy == 'noauth':
        flask.g.context = context.RequestContext(
            user_id=_NOBODY,
            project_id=_NOBODY,
            is_admin=True,
            roles=['admin', 'member', 'reader'],
            request_id=environ.get('openstack.request_id'),
        )
        return
    flask.g.identity_problem = environ.get(ENVIRON_PROBLEM)
    flask.g.authenticated = (
        environ.get('HTTP_X_IDENTITY_STATUS') == 'Confirmed'
    )
    flask.g.context = context.RequestContext.from_environ(environ)


def middleware(app: ty.Any, conf: cfg.ConfigOpts) -> ty.Any:
    """Wrap a WSGI application so that tokens are checked.

    The decision is left to the policies: versions and health are for
    everyone.
    """
    if conf.api.auth_strategy == 'noauth':
        return app
    # Only here: importing it takes as long as all the rest together, and
    # the embedded service never needs it.
    from vsched_api.rest import tokens

    return tokens.make(app, conf, ENVIRON_PROBLEM)

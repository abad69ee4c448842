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

"""Who a request is from."""

import typing as ty

import flask
from oslo_context import context

from vsched_api.rest import services

_NOBODY = 'noauth'


def identify() -> None:
    """Keep who the request is from in ``flask.g.context``.

    keystonemiddleware puts it into the request's environment. Without it,
    by ``[api] auth_strategy = noauth``, everyone is an administrator.
    """
    environ = flask.request.environ
    flask.g.authenticated = True
    if services.current().conf.api.auth_strategy == 'noauth':
        flask.g.context = context.RequestContext(
            user_id=_NOBODY, project_id=_NOBODY, is_admin=True,
            roles=['admin', 'member', 'reader'],
            request_id=environ.get('openstack.request_id'))
        return
    flask.g.authenticated = (
        environ.get('HTTP_X_IDENTITY_STATUS') == 'Confirmed')
    flask.g.context = context.RequestContext.from_environ(environ)


def middleware(app: ty.Any, conf: ty.Any) -> ty.Any:
    """Wrap a WSGI application so that tokens are checked.

    The decision is left to the policies: versions and health are for
    everyone.
    """
    if conf.api.auth_strategy == 'noauth':
        return app
    # Only here: importing it takes as long as all the rest together, and
    # the embedded service never needs it.
    from keystonemiddleware import auth_token
    return auth_token.AuthProtocol(app, {
        'oslo_config_config': conf, 'delay_auth_decision': True})

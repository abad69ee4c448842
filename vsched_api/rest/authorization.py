# SPDX-License-Identifier: Apache-2.0

"""Whether it may, and proof that this was asked."""

import flask
from oslo_log import log as logging

from vsched_api.rest import errors
from vsched_api.rest import services
from vsched_lib.contract import errors as contract_errors

LOG = logging.getLogger(__name__)


def enforce(rule: str) -> None:
    """Go on only if the request may do what the rule is about.

    Every handler calls this before anything else.

    :raises errors.IdentityUnavailable: when its token cannot be checked now.
    :raises errors.Unauthenticated: when it would need to say who it is.
    :raises errors.Forbidden: when that one may not.
    """
    allowed = services.current().enforcer.authorize(rule, {}, flask.g.context)
    flask.g.enforced = True
    if allowed:
        return
    if flask.g.identity_problem is not None:
        raise errors.IdentityUnavailable(flask.g.identity_problem)
    if not flask.g.authenticated:
        raise errors.Unauthenticated('a valid token is needed')
    raise errors.Forbidden('policy %s does not allow it' % rule)


def accept() -> None:
    """Go on with a request that is allowed by other means than a policy."""
    flask.g.enforced = True


def allows(rule: str) -> bool:
    """Whether the request may do what a rule is about.

    For parts of an answer; :func:`enforce` decides about all of it.
    """
    return bool(
        services.current().enforcer.authorize(rule, {}, flask.g.context)
    )


def expect_enforcement() -> None:
    """From here on the answer is one of a handler, which must ask."""
    flask.g.expected = flask.request.routing_exception is None


def require_enforcement(answer: flask.Response) -> flask.Response:
    """Hold back the answer of a handler that never asked."""
    if flask.g.get('expected') and not flask.g.get('enforced'):
        LOG.error(
            '%s %s: its handler enforces no policy',
            flask.request.method,
            flask.request.path,
        )
        return errors.response(
            500,
            contract_errors.Code.INTERNAL,
            ['the request was handled without asking whether it may'],
        )
    return answer

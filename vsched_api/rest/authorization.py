# SPDX-License-Identifier: Apache-2.0

"""Whether it may, and proof that this was asked."""

import flask
from oslo_log import log as logging

from vsched_api.operations import instances
from vsched_api.rest import errors
from vsched_api.rest import services
from vsched_lib.contract import errors as contract_errors

LOG = logging.getLogger(__name__)


def enforce(rule: str) -> None:
    """Go on only if the request may do what the rule is about.

    Every handler calls this before anything else. A request that passes only
    with its own project goes on as well: what it is about is limited by
    :func:`limit` or :func:`enforce_instance`.

    :raises errors.IdentityUnavailable: when its token cannot be checked now.
    :raises errors.Unauthenticated: when it would need to say who it is.
    :raises errors.Forbidden: when that one may not.
    """
    allowed = allows(rule) or allows_project(rule, flask.g.context.project_id)
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


def limit(rule: str, project_id: str | None) -> str | None:
    """Return the project that a list has to be limited to.

    :param rule: that :func:`enforce` has passed.
    :param project_id: the one that the request names; None for all.
    :returns: None for all.
    :raises errors.Forbidden: when the request names another project than
        its own, and may not see all.
    """
    if allows(rule):
        return project_id
    own: str = flask.g.context.project_id
    if project_id not in (None, own):
        raise errors.Forbidden(
            'project_id: policy %s allows only the project of the token' % rule
        )
    return own


def enforce_instance(rule: str, instance_uuid: str) -> None:
    """Go on only if the rule allows it for the project of an instance.

    :param rule: that :func:`enforce` has passed.
    :raises vsched_api.operations.errors.NotFound: else, as for an instance
        that no agent reported: who may not see it learns nothing of it.
    """
    if allows(rule):
        return
    project_id = instances.project_id(
        services.current().database, instance_uuid
    )
    if not allows_project(rule, project_id):
        raise instances.unknown(instance_uuid)


def allows(rule: str) -> bool:
    """Whether the request may do what a rule is about, for all projects.

    For parts of an answer; :func:`enforce` decides about all of it.
    """
    known: dict[str, bool] = flask.g.setdefault('allowed', {})
    if rule not in known:
        known[rule] = bool(
            services.current().enforcer.authorize(rule, {}, flask.g.context)
        )
    return known[rule]


def allows_project(rule: str, project_id: str | None) -> bool:
    """Whether the request may do what a rule is about in this project."""
    # Without a project there must be no key: None would be compared as text.
    return project_id is not None and bool(
        services.current().enforcer.authorize(
            rule, {'project_id': project_id}, flask.g.context
        )
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

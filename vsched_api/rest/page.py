# SPDX-License-Identifier: Apache-2.0

"""``/ui``: the page for operators, and what its user may do.

The page is static files, which the package vsched_ui has. It requests its
data from the other routes, with the token of its user. Addresses of its
views are answered with its index; it shows the view itself.
"""

import html

import flask
from oslo_policy import policy

from vsched_api.operations import page
from vsched_api import policies as all_policies
from vsched_api.policies import page as policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import fields
from vsched_api.schemas import page as schemas

BLUEPRINT = flask.Blueprint('page', __name__)

#: Scripts, styles, fonts and requests are of this server only. Nothing inline
#: is needed: React and ECharts set styles by the object model of the
#: document, to which the policy does not apply.
CONTENT_SECURITY_POLICY = '; '.join(
    (
        "default-src 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)

_HEADERS = {
    'Content-Security-Policy': CONTENT_SECURITY_POLICY,
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
}

#: The name of an asset contains a digest of its content.
_ASSET_CACHING = 'public, max-age=31536000, immutable'


@BLUEPRINT.get('/ui')
@documentation.static
def index() -> flask.Response:
    """The index of the page."""
    return _index()


@BLUEPRINT.get('/ui/<view>')
@documentation.static
def view(view: str) -> flask.Response:
    """The index, for the address of a view."""
    return _index()


@BLUEPRINT.get('/ui/<view>/<item>')
@documentation.static
def item(view: str, item: str) -> flask.Response:
    """The index, for the address of a view of one thing."""
    return _index()


@BLUEPRINT.get('/ui/assets/<asset>')
@documentation.static
def asset(asset: str) -> flask.Response:
    """A script, a style sheet, an image or a font."""
    authorization.enforce(policies.SHOW)
    validation.query(fields.NOTHING)
    found = page.asset(asset)
    answer = flask.Response(found.content, content_type=found.mimetype)
    tag = found.tag
    if found.zipped is not None:
        answer.vary.add('Accept-Encoding')
        if flask.request.accept_encodings['gzip'] > 0:
            answer.set_data(found.zipped)
            answer.content_encoding = 'gzip'
            tag += '-gzip'
    answer.headers['Cache-Control'] = _ASSET_CACHING
    return _guarded(answer, tag)


@BLUEPRINT.get('/ui/session')
@documentation.operation(policies.SHOW, schemas.SHOW_SESSION)
def session() -> flask.Response:
    """Show who the request is from, and what the policies allow it."""
    authorization.enforce(policies.SHOW)
    validation.query(fields.NOTHING)
    context = flask.g.context
    allowed, in_project = _allowed(context.project_id)
    answer = flask.jsonify(
        {
            'session': {
                'auth_strategy': services.current().conf.api.auth_strategy,
                'authenticated': flask.g.authenticated,
                'problem': flask.g.identity_problem,
                'user_id': context.user_id,
                'roles': list(context.roles or ()),
                'project_id': context.project_id,
                'allowed': allowed,
                'allowed_in_project': in_project,
            }
        }
    )
    answer.headers['Cache-Control'] = 'no-store'
    return answer


def _allowed(project_id: str | None) -> tuple[list[str], list[str]]:
    """Return the policies that pass for all projects, and for one only."""
    everywhere, in_project = [], []
    for rule in all_policies.list_rules():
        if not isinstance(rule, policy.DocumentedRuleDefault):
            continue
        if authorization.allows(rule.name):
            everywhere.append(rule.name)
        elif authorization.allows_project(rule.name, project_id):
            in_project.append(rule.name)
    return everywhere, in_project


def _index() -> flask.Response:
    authorization.enforce(policies.SHOW)
    content = page.read().index
    # Below the path at which a server mounts the API, if it does.
    path = '%s/ui/' % flask.request.root_path.rstrip('/')
    content = content.replace(
        page.BASE, b'<base href="%s">' % html.escape(path).encode()
    )
    answer = flask.Response(content, content_type='text/html; charset=utf-8')
    answer.headers['Cache-Control'] = 'no-cache'
    return _guarded(answer, page.digest(content))


def _guarded(answer: flask.Response, tag: str) -> flask.Response:
    """Add what browsers are to enforce; answer 304 where the tag is known."""
    answer.headers.update(_HEADERS)
    answer.set_etag(tag)
    # Werkzeug's own would answer other conditions without an error document.
    if flask.request.if_none_match.contains_weak(tag):
        answer.status_code = 304
        answer.set_data(b'')
        del answer.headers['Content-Length']
    return answer

# SPDX-License-Identifier: Apache-2.0

"""A service that checks tokens, and the tokens of several kinds."""

import re
import typing as ty

import fixtures
import flask
from keystoneauth1 import fixture as keystoneauth_fixture
from keystonemiddleware import fixture as keystone_fixture

from vsched_api.operations import page
from vsched_api.tests import base
from vsched_api.tests import database_options

#: What the paths of routes are filled with.
EXAMPLES = {
    'asset': min(page.read().assets),
    'item': 'node1',
    'name': 'node1',
    'view': 'hosts',
    'job_uuid': '0b7d3a52-1c1e-4f6e-9a55-6d1f0a1f7c11',
    'instance_uuid': '3a9d1c3e-5b1c-4c53-a2a4-6bb0a2e0a1a1',
}


def routes(
    app: flask.Flask, **examples: str
) -> ty.Iterator[tuple[str, str, str]]:
    """Yield method, path and template, as policies write it, of each route.

    :param examples: instead of some of :data:`EXAMPLES`.
    """
    named = {**EXAMPLES, **examples}
    for rule in app.url_map.iter_rules():
        path = re.sub(r'<(\w+)>', lambda found: named[found[1]], rule.rule)
        template = re.sub(r'<(\w+)>', r'{\1}', rule.rule)
        for method in (rule.methods or set()) - {'HEAD'}:
            yield method, path, template


class TokenCase(base.TestCase):
    """A test with a service that checks tokens."""

    def setUp(self) -> None:
        super().setUp()
        options = self.useFixture(fixtures.TempDir()).join('vsched.conf')
        with open(options, 'w') as file:
            file.write(
                '[keystone_authtoken]\n'
                'www_authenticate_uri = http://127.0.0.1:5000\n'
            )
        self.conf = base.patient(
            database_options.configuration(
                self.conf.database.connection, '--config-file', options
            )
        )
        self.conf.set_override('auth_strategy', 'keystone', 'api')
        self.tokens = self.useFixture(keystone_fixture.AuthTokenFixture())
        self.http = self.client()

    def token(
        self,
        *roles: str,
        system: bool = False,
        domain: bool = False,
        project_id: str | None = None,
    ) -> dict[str, str]:
        """Return the headers of a request with a new token.

        :param project_id: of the token, unless it is for the system or for a
            domain; a new one if None.
        """
        data = keystoneauth_fixture.V3Token()
        if system:
            data.set_system_scope()
        elif domain:
            data.set_domain_scope()
        else:
            data.set_project_scope(id=project_id)
        for role in roles:
            data.add_role(role)
        return {'X-Auth-Token': self.tokens.add_token(data)}

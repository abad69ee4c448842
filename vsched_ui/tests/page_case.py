# SPDX-License-Identifier: Apache-2.0

"""A test of the page in a browser."""

from collections.abc import Sequence
import pathlib
import re
import shutil
import tempfile
import time
import types
import typing as ty

from keystoneauth1 import fixture as keystoneauth_fixture
from keystonemiddleware import fixture as keystone_fixture
from oslo_config import cfg
from oslotest import base
import requests

from vsched_api.tests import base as api_base
from vsched_api.tests import database_options
from vsched_api.tests import databases
from vsched_lib.contract import messages
from vsched_lib.tests import requirements
from vsched_ui.tests import browser
from vsched_ui.tests import fleet
from vsched_ui.tests import serving

#: So old may the newest usage of the fleet be when a test begins, in seconds.
#: Views show hosts without usage of the last two minutes otherwise.
_FRESH_S = 15


def other_errors(tab: browser.Tab) -> list[str]:
    """Return the errors of a page but those of the status of an answer."""
    return [one for one in tab.errors if 'Failed to load resource' not in one]


class BrowserCase(base.BaseTestCase):
    """One browser for all tests of a class, and a service of any kind.

    :cvar browsers: names of the browser's program, the preferred one first.
    :cvar url: root of the API.
    """

    browsers: ty.ClassVar[Sequence[str]] = browser.NAMES
    chromium: ty.ClassVar[browser.Browser]
    missing: ty.ClassVar[str | None] = None
    url: ty.ClassVar[str]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        try:
            cls.chromium = browser.Browser(cls.browsers)
        except browser.Missing as problem:
            cls.missing = str(problem)
            return
        cls.addClassCleanup(cls.chromium.close)

    def setUp(self) -> None:
        super().setUp()
        if self.missing is not None:
            requirements.require(self, 'chromium', self.missing)

    def tab(self, path: str = '', **options: ty.Any) -> browser.Tab:
        """Open the page at a path below ``/ui``."""
        made = self.chromium.tab(**options)
        self.addCleanup(made.close)
        self.go(made, path)
        return made

    def go(self, tab: browser.Tab, path: str) -> None:
        """Load a view."""
        tab.page.goto(self.url + '/ui' + path)

    def request(
        self, method: str, path: str, **more: ty.Any
    ) -> requests.Response:
        """Send a request beside the page."""
        return requests.request(
            method, self.url + path, timeout=serving.TIMEOUT_S, **more
        )

    def see(self, tab: browser.Tab, text: str, exact: bool = True) -> None:
        """Wait until a text is visible."""
        tab.page.get_by_text(text, exact=exact).filter(
            visible=True
        ).first.wait_for()

    def see_heading(self, tab: browser.Tab, text: str) -> None:
        """Wait until a heading is visible."""
        tab.page.get_by_role('heading', name=text, exact=True).first.wait_for()

    def banner(self, tab: browser.Tab) -> ty.Any:
        """Return the banner of an API that does not answer.

        Notes of lists that could not be read have the same words.
        """
        return tab.page.get_by_role('heading', name='The API does not answer.')

    def wait_for_data(self, tab: browser.Tab) -> None:
        """Wait until all that the view has requested is there."""
        # Long lists show their beginning while they are read.
        self.chromium.expect(
            tab.page.locator('.vs-loading').or_(
                tab.page.get_by_text('Reading the rest')
            )
        ).to_have_count(0)

    def sent(
        self, tab: browser.Tab, method: str, act: ty.Callable[[], object]
    ) -> tuple[str, ty.Any]:
        """Return the path and the body of the request that an act sends.

        The form evaluates whenever what it depends on is read again: that is
        not what the act sends.
        """
        with tab.page.expect_request(
            lambda request: (
                request.method == method
                and not request.url.endswith('/v1/evaluations')
            )
        ) as found:
            act()
        path = found.value.url.removeprefix(self.url)
        return path, found.value.post_data_json

    def wait_for(self, condition: ty.Callable[[], bool]) -> None:
        """Wait until a condition holds, or for as long as anything may take.

        For what no assertion of Playwright's waits for. What is asserted
        afterwards shows what is missing.
        """
        give_up_s = time.monotonic() + browser.PATIENCE_S
        while not condition() and time.monotonic() < give_up_s:
            time.sleep(0.1)

    def button(self, tab: browser.Tab, name: str) -> ty.Any:
        """Return the buttons of that name."""
        return tab.page.get_by_role('button', name=re.compile(name))

    def check(self, tab: browser.Tab) -> None:
        """Fail if the page has reported errors, or excludes some users."""
        self.wait_for_data(tab)
        self.assertEqual([], tab.axe(), tab.page.url)
        self.assertEqual([], tab.errors, tab.page.url)


class PageCase(BrowserCase):
    """One browser and one service for all tests of a class."""

    hosts: ty.ClassVar[int] = 40
    instances: ty.ClassVar[int] = 5
    auth_strategy: ty.ClassVar[str] = 'noauth'

    service: ty.ClassVar[serving.Service]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        if cls.missing is not None:
            return
        cls.service = serving.Service(
            cls.configuration(), cls.hosts, cls.instances
        )
        cls.addClassCleanup(cls.service.close)
        cls.url = cls.service.url
        cls.populate()

    def setUp(self) -> None:
        super().setUp()
        self.service.refresh(_FRESH_S)

    @classmethod
    def populate(cls) -> None:
        """Report what the tests of the class need beside the fleet."""

    @classmethod
    def add_host(
        cls, number: int, *instances: messages.InstanceInfo
    ) -> fleet.Host:
        """Add a host that nothing is known of but its instances.

        :param number: of the host, from 1; no other one has it.
        """
        host = fleet.Host(cls.service.collector, number, 0, time.time())
        host.first()
        if instances:
            host.send(instances=instances)
        return host

    @classmethod
    def configuration(cls) -> cfg.ConfigOpts:
        """Return the options of the service."""
        owner: ty.Any = types.SimpleNamespace(addCleanup=cls.addClassCleanup)
        return cls.adapted(
            database_options.configuration(databases.SQLite.make(owner))
        )

    @classmethod
    def adapted(cls, conf: cfg.ConfigOpts) -> cfg.ConfigOpts:
        """Set the options that the services of all these tests have."""
        conf.set_override('auth_strategy', cls.auth_strategy, 'api')
        # No host but the ones that are down is silent for as long, however
        # long all tests of a class take.
        conf.set_override('host_down_after_s', fleet.SILENT_S // 2, 'api')
        return api_base.patient(conf)


class KeystoneCase(PageCase):
    """A service with tokens that keystonemiddleware accepts."""

    auth_strategy = 'keystone'

    @classmethod
    def configuration(cls) -> cfg.ConfigOpts:
        """Return the options of the service."""
        plain = super().configuration()
        folder = tempfile.mkdtemp(prefix='vsched-test-')
        cls.addClassCleanup(shutil.rmtree, folder)
        options = pathlib.Path(folder, 'vsched.conf')
        options.write_text(
            '[keystone_authtoken]\n'
            'www_authenticate_uri = http://127.0.0.1:5000\n'
        )
        return cls.adapted(
            database_options.configuration(
                plain.database.connection, '--config-file', str(options)
            )
        )

    def setUp(self) -> None:
        super().setUp()
        self.tokens = self.useFixture(keystone_fixture.AuthTokenFixture())

    def token(
        self, *roles: str, system: bool = False, project: str | None = None
    ) -> str:
        """Return a token with roles.

        :param system: whether it is for the system, not for a project.
        :param project: the ID of the project; any without it.
        """
        data = keystoneauth_fixture.V3Token()
        if system:
            data.set_system_scope()
        else:
            data.set_project_scope(id=project)
        for role in roles:
            data.add_role(role)
        return str(self.tokens.add_token(data))

    def sign_in(self, token: str, path: str = '') -> browser.Tab:
        """Open the page with a token."""
        tab = self.tab(path)
        self.enter(tab, token)
        return tab

    def enter(self, tab: browser.Tab, token: str) -> None:
        """Give the page the token that it asks for."""
        tab.page.get_by_label('Token').fill(token)
        self.button(tab, 'Sign in').click()

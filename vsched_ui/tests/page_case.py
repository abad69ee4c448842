# SPDX-License-Identifier: Apache-2.0

"""A test of the page in a browser."""

import re
import types
import typing as ty

from oslo_config import cfg
from oslotest import base
import requests

from vsched_api.tests import databases
from vsched_lib.tests import requirements
from vsched_ui.tests import browser
from vsched_ui.tests import serving

#: A request of a test is answered within this, or hangs.
_TIMEOUT_S = 30


class BrowserCase(base.BaseTestCase):
    """One browser for all tests of a class, and a service of any kind.

    :cvar url: root of the API.
    """

    chromium: ty.ClassVar[browser.Browser]
    missing: ty.ClassVar[str | None] = None
    url: ty.ClassVar[str]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        try:
            cls.chromium = browser.Browser()
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
            method, self.url + path, timeout=_TIMEOUT_S, **more
        )

    def see(self, tab: browser.Tab, text: str, exact: bool = True) -> None:
        """Wait until a text is visible."""
        tab.page.get_by_text(text, exact=exact).filter(
            visible=True
        ).first.wait_for()

    def see_heading(self, tab: browser.Tab, text: str) -> None:
        """Wait until a heading is visible."""
        tab.page.get_by_role('heading', name=text, exact=True).first.wait_for()

    def wait_for_data(self, tab: browser.Tab) -> None:
        """Wait until all that the view has requested is there."""
        self.chromium.expect(tab.page.locator('.vs-loading')).to_have_count(0)

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

    @classmethod
    def configuration(cls) -> cfg.ConfigOpts:
        """Return the options of the service."""
        owner: ty.Any = types.SimpleNamespace(addCleanup=cls.addClassCleanup)
        conf = databases.configuration(databases.SQLite.make(owner))
        conf.set_override('auth_strategy', cls.auth_strategy, 'api')
        # No host but the ones that are down is silent for as long.
        conf.set_override('host_down_after_s', 500, 'api')
        return conf

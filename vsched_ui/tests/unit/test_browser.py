# SPDX-License-Identifier: Apache-2.0

"""Which browser the tests of the page take."""

import os
import pathlib

import fixtures
from oslotest import base

from vsched_ui.tests import browser


class ExecutableTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(fixtures.EnvironmentVariable('PATH', str(self.folder)))
        self.useFixture(fixtures.EnvironmentVariable(browser.VARIABLE))

    def add(self, *names):
        for name in names:
            (self.folder / name).touch(0o755)

    def found(self, *arguments):
        return os.path.relpath(browser.executable(*arguments), self.folder)

    def test_the_engine_without_windows_comes_first(self):
        self.add('chromium', 'chromium-headless-shell')
        self.assertEqual('chromium-headless-shell', self.found())
        self.assertEqual('chromium', self.found(browser.WINDOWED))

    def test_what_people_use_does_as_well(self):
        self.add('chromium-browser')
        self.assertEqual('chromium-browser', self.found())

    def test_the_engine_without_windows_is_not_what_people_use(self):
        self.add('chromium-headless-shell')
        self.assertRaises(
            browser.Missing, browser.executable, browser.WINDOWED
        )

    def test_another_one_is_named(self):
        self.add('chromium', 'chromium-headless-shell', 'other')
        named = str(self.folder / 'other')
        self.useFixture(fixtures.EnvironmentVariable(browser.VARIABLE, named))
        self.assertEqual('other', self.found())
        self.assertEqual('other', self.found(browser.WINDOWED))

    def test_there_is_none(self):
        self.assertRaises(browser.Missing, browser.executable)

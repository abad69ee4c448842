# SPDX-License-Identifier: Apache-2.0

"""Chromium, driven over its own protocol, and what it reports of a page."""

from collections.abc import Sequence
import contextlib
import json
import os
import pathlib
import shutil
import tempfile
import typing as ty

AXE = pathlib.Path(__file__).with_name('assets') / 'axe.min.js'

#: Where the browser is; one in PATH without it.
VARIABLE = 'VSCHED_TEST_CHROMIUM'
#: The browser that people use. It opens a window for each profile, and draws
#: its own user interface there, in processes of its own.
WINDOWED = ('chromium', 'chromium-browser')
#: The same engine without that interface comes first: to open and load a view
#: takes it half of the CPU time.
NAMES = ('chromium-headless-shell', *WINDOWED)

ARGUMENTS = (
    # The tests run as root, and nothing but the page is opened.
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    # A small /dev/shm, as in containers, would end the browser.
    '--disable-dev-shm-usage',
)

#: How long anything of the page may take before it counts as missing: far
#: above what it takes, so that a busy machine fails no test.
PATIENCE_S = float(os.environ.get('VSCHED_TEST_PATIENCE_S', '90'))

#: Violations of the page's policy, which have no exception to catch.
_WATCH = """
document.addEventListener('securitypolicyviolation', (event) =>
  console.error(
    'CSP: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' +
    event.sourceFile + ':' + event.lineNumber));
"""


#: Timers of a second or more do not fire: nothing is read again by itself. A
#: request that is given up would not be sent again, so none is.
_NO_POLLS = """
AbortSignal.timeout = () => new AbortController().signal;
for (const name of ['setTimeout', 'setInterval']) {
  const real = window[name].bind(window);
  window[name] = (act, ms, ...more) =>
    ms >= 1000 ? 0 : real(act, ms, ...more);
}
"""


class Missing(Exception):
    """There is no browser, or nothing that drives it."""


def executable(names: Sequence[str] = NAMES) -> str:
    """Return the path of the browser.

    :param names: of programs, the preferred one first.
    :raises Missing: when there is none.
    """
    named = os.environ.get(VARIABLE)
    if named:
        names = (named,)
    for name in names:
        found = shutil.which(name)
        if found is not None:
            return found
    raise Missing('%s is not in PATH' % ' or '.join(names))


class Browser:
    """A running browser with a profile of its own.

    :param names: of programs, the preferred one first.
    :ivar expect: Playwright's assertions, which wait.
    :raises Missing: when there is none, or nothing that drives it.
    """

    def __init__(self, names: Sequence[str] = NAMES) -> None:
        program = executable(names)
        try:
            from playwright import sync_api
        except ImportError as problem:
            raise Missing(str(problem)) from problem
        # Assertions that wait. They do so outside of the page, whose policy
        # refuses the scripts of Playwright's "wait_for_function".
        self.expect: ty.Any = sync_api.expect
        self.expect.set_options(timeout=1000 * PATIENCE_S)
        with contextlib.ExitStack() as stack:
            # The driver keeps its own files there.
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix='vsched-browser-')
            )
            driver = stack.enter_context(sync_api.sync_playwright())
            self._browser: ty.Any = driver.chromium.launch(
                executable_path=program,
                headless=True,
                args=list(ARGUMENTS),
                timeout=1000 * PATIENCE_S,
            )
            stack.callback(self._browser.close)
            self._stack = stack.pop_all()

    @property
    def version(self) -> str:
        """Return the version of the browser."""
        return str(self._browser.version)

    def close(self) -> None:
        """End the browser."""
        self._stack.close()

    def tab(self, **options: ty.Any) -> 'Tab':
        """Open a tab that shares nothing with others.

        :param options: as of Playwright's ``new_context``.
        """
        return Tab(
            self._browser.new_context(
                **{
                    'viewport': {'width': 1440, 'height': 900},
                    'locale': 'en-GB',
                    'timezone_id': 'UTC',
                    'color_scheme': 'light',
                    'reduced_motion': 'reduce',
                    **options,
                }
            )
        )


class Tab:
    """A tab, and the errors that it has reported.

    :ivar page: Playwright's page.
    :ivar errors: of the console, of scripts and of the page's policy.
    """

    def __init__(self, context: ty.Any) -> None:
        self._context = context
        context.set_default_timeout(1000 * PATIENCE_S)
        context.add_init_script(_WATCH)
        self.page: ty.Any = context.new_page()
        self.errors: list[str] = []
        self.page.on('console', self._console)
        self.page.on('pageerror', lambda error: self.errors.append(str(error)))

    def _console(self, message: ty.Any) -> None:
        if message.type in ('error', 'warning'):
            self.errors.append('%s: %s' % (message.type, message.text))

    def stop_polls(self) -> None:
        """Have the views that are loaded next read only on demand."""
        self.page.add_init_script(_NO_POLLS)

    def close(self) -> None:
        """Close the tab."""
        self._context.close()

    def axe(self) -> list[str]:
        """Return the serious violations of accessibility on the page."""
        self.page.evaluate(AXE.read_text(encoding='utf-8') + '\n;undefined')
        found = self.page.evaluate(
            'async () => (await axe.run(document, {resultTypes: '
            "['violations']})).violations"
        )
        return [
            '%s: %s: %s'
            % (
                one['impact'],
                one['id'],
                json.dumps(
                    [
                        [node['html'][:200], node.get('failureSummary', '')]
                        for node in one['nodes'][:3]
                    ]
                ),
            )
            for one in found
            if one['impact'] in ('serious', 'critical')
        ]

# SPDX-License-Identifier: Apache-2.0

"""How soon the operators' page is of use, over a fleet of 1 000 hosts."""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import gc
import statistics
import time
import typing as ty
import unittest

from benchmarks import frame
from benchmarks import page_views
from benchmarks import stored_fleet
from vsched_api.tests import database_options
from vsched_api.tests import databases
from vsched_ui.tests import browser
from vsched_ui.tests import fleet
from vsched_ui.tests import serving
from vsched_ui.tests import views

REPEATS = 10
CHANGES = 20
_QUICK_HOSTS = 100
_QUICK = 2

ABOUT = frame.About(
    "The operators' page over a large fleet",
    'A service with a database in PostgreSQL has 1 000 hosts with five '
    'instances each, all with a reservation and with a minute of usage. '
    'Chromium, which Playwright drives, opens the page from it on the same '
    'machine. Each repeat has a profile of its own: nothing is cached. Its '
    'window has been open for two seconds, so that the browser has loaded '
    'its own user interface.\n\n'
    'The time of a view begins with its navigation and is taken on the page, '
    'at the first frame. A view with a table is '
    'interactive when a filter is applied that is typed once the first rows '
    'are there: the table shows the one row that it is about. For *hosts*, '
    '*reservations*, *evidence* and *whatif* that is the last of the list. '
    'The filter searches the whole list, so it has been read. *Instances* '
    'are those of one host, on its view. Of *evidence* it is the table of '
    'certificates. *Whatif* is shown when its form can be sent. It is sent '
    'then as it is, and the table is that of all hosts with the evaluation. '
    'The *overview* is interactive when its figures count all '
    'hosts and none of its parts is loading, the view of an *instance* when '
    'it has its figures and none of its parts is loading. The slowest repeat '
    'of the slowest view counts.\n\n'
    'A change is a ``PATCH`` of a reservation that another client sends. It '
    'is timed until the new share is visible in the list of reservations and '
    'in the view of its instance, both open; the slower one counts, of all '
    'changes the slowest.\n\n'
    'Every view is checked in both themes: *violations* are those that axe '
    'calls serious or critical, *errors* those of the console, of scripts '
    'and of the Content Security Policy, in every part of this benchmark.',
    units={
        'first_view_s_1000_hosts': 'seconds until the slowest view is '
        'interactive, the slowest repeat',
        'patch_to_screen_s': 'seconds until a change is on the screen, the '
        'slowest',
        'bundle_kb': 'kilobytes of scripts, styles, fonts and images that '
        'the first view transfers',
        'axe_serious': 'serious violations of accessibility',
        'console_errors': 'errors in the console',
    },
    targets=(
        frame.at_most('first_view_s_1000_hosts', 2, 's', 'issue 20'),
        frame.at_most('patch_to_screen_s', 3, 's', 'issue 20'),
        frame.at_most('axe_serious', 0, '', 'issue 20'),
        frame.at_most('console_errors', 0, '', 'issue 20'),
    ),
    # Less the records that the page shows, which a new one of this changes.
    exercises=(
        'vsched_ui/src/api',
        'vsched_ui/src/app',
        'vsched_ui/src/components',
        'vsched_ui/src/main.tsx',
        'vsched_ui/src/model',
        'vsched_ui/src/pages',
    ),
)

#: A window that opens loads parts of the browser's own user interface, which
#: takes a CPU for most of a second.
_SETTLE_S = 2
#: The newest minute of a fleet that was seeded longer ago is shown no more.
_FRESH_S = 60
_PERIOD_US = 20_000
_ROWS = 'tbody tr'
_LOADING = '.vs-loading'


class Bench(page_views.Views):
    """A fleet, its service and a browser.

    :param conf: of the service, with a database that has its tables.
    :param hosts: how many hosts the fleet has.
    """

    def __init__(self, conf: ty.Any, hosts: int) -> None:
        super().__init__(hosts, stored_fleet.RESERVATIONS)
        # Hosts report when their usage is refreshed.
        conf.set_override('host_down_after_s', 5 * _FRESH_S, 'api')
        self.errors: list[str] = []
        with contextlib.ExitStack() as stack:
            self.browser = browser.Browser(browser.WINDOWED)
            stack.callback(self.browser.close)
            self.service = serving.Service(
                conf, hosts, stored_fleet.RESERVATIONS, hostile=False
            )
            stack.callback(self.service.close)
            # A service that operators run has no fleet's objects among those
            # that the collector of garbage looks through.
            gc.collect()
            gc.freeze()
            stack.callback(gc.unfreeze)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """End the browser and the service."""
        self._stack.close()

    def refresh(self) -> None:
        """Report usage of the present, if the newest becomes old."""
        self.service.refresh(_FRESH_S)

    @contextlib.contextmanager
    def tab(self, path: str, **options: ty.Any) -> Iterator[browser.Tab]:
        """Open a view in a profile of its own; keep the errors it reports."""
        tab = self.browser.tab(**options)
        try:
            tab.page.wait_for_timeout(1000 * _SETTLE_S)
            tab.page.goto(
                self.service.direct_url + '/ui' + path, wait_until='commit'
            )
            yield tab
        finally:
            self.errors += ['%s: %s' % (path, one) for one in tab.errors]
            tab.close()

    def changes(self, count: int) -> Iterator[dict[str, float]]:
        """Change reservations; return how long each took to be seen."""
        for number in range(count):
            self.refresh()
            # All but the first host are silent: a change is desired, and
            # not in force.
            uuid = fleet.instance_uuid(2 + number % 20, 1 + number // 20)
            share_pct = 31 + number
            with (
                self.tab('/reservations?reservations.q=' + uuid) as table,
                self.tab('/instances/' + uuid) as view,
            ):
                shown = table.page.locator(_ROWS).get_by_text(
                    '%d.0 %%' % share_pct
                )
                tile = view.page.get_by_text('%d.0 %%' % share_pct).filter(
                    visible=True
                )
                self.browser.expect(table.page.locator(_ROWS)).to_have_count(1)
                for one in (table, view):
                    self.browser.expect(
                        one.page.locator(_LOADING)
                    ).to_have_count(0)
                # At any moment between two polls.
                table.page.wait_for_timeout(137 * number % 1_500)
                began = time.monotonic()
                self.service.patch(
                    uuid, runtime_us=share_pct * _PERIOD_US // 100
                )
                answered_s = time.monotonic() - began
                table_s, view_s = _first_seen(
                    began, ((table, shown), (view, tile))
                )
            yield {
                'answered_s': round(answered_s, 3),
                'table_s': round(table_s, 3),
                'view_s': round(view_s, 3),
            }

    def accessibility(self) -> Iterator[tuple[str, list[str]]]:
        """Check each view in each theme."""
        for path, _, text in views.VIEWS:
            found = []
            for theme in ('light', 'dark'):
                self.refresh()
                with self.tab(path, color_scheme=theme) as tab:
                    tab.page.get_by_text(text).filter(
                        visible=True
                    ).first.wait_for()
                    self.browser.expect(
                        tab.page.locator(_LOADING)
                    ).to_have_count(0)
                    found += ['%s: %s' % (theme, one) for one in tab.axe()]
            yield path, found


def _first_seen(
    began: float, sought: Sequence[tuple[browser.Tab, ty.Any]]
) -> list[float]:
    """Return when each was visible, in seconds; of whichever comes first."""
    found: dict[int, float] = {}
    deadline = began + browser.PATIENCE_S
    while len(found) < len(sought):
        for number, (tab, locator) in enumerate(sought):
            if number not in found and locator.count() > 0:
                found[number] = time.monotonic() - began
            # Lets Playwright handle what its browser reports.
            tab.page.wait_for_timeout(10)
        if time.monotonic() > deadline:
            raise AssertionError('a change was not seen')
    return [found[number] for number in range(len(sought))]


def figures(found: Sequence[page_views.Seen]) -> dict[str, ty.Any]:
    """Return the figures of a view, of all its repeats."""
    return {
        'shown_s': _spread([one.shown_s for one in found]),
        'interactive_s': _spread([one.interactive_s for one in found]),
        'assets_kb': round(max(one.assets_kb for one in found), 1),
        'requests': max(one.requests for one in found),
        'answers_kb': round(max(one.answers_kb for one in found), 1),
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    """Return the least, the median and the most."""
    return {
        'min': round(min(values), 3),
        'median': round(statistics.median(values), 3),
        'max': round(max(values), 3),
    }


def run(quick: bool) -> frame.Run:
    """The views, changes, and accessibility."""
    test = unittest.TestCase()
    try:
        try:
            browser.executable(browser.WINDOWED)
            url = databases.PostgreSQL.make(test)
        except (browser.Missing, unittest.SkipTest) as problem:
            raise frame.Unavailable(str(problem)) from problem
        with contextlib.closing(
            Bench(
                database_options.configuration(url),
                _QUICK_HOSTS if quick else stored_fleet.HOSTS,
            )
        ) as bench:
            return (yield from _measure(bench, quick))
    finally:
        test.doCleanups()


def _measure(bench: Bench, quick: bool) -> frame.Run:
    opened: dict[str, list[page_views.Seen]] = {}
    # A first one of each, for what the service reads once.
    for repeat in range(1 + (_QUICK if quick else REPEATS)):
        for name in page_views.VIEWS:
            bench.refresh()
            found = getattr(bench, name)()
            if repeat > 0:
                opened.setdefault(name, []).append(found)
    for name, seen in opened.items():
        yield frame.Variant(name, figures(seen))
    changes = list(bench.changes(_QUICK if quick else CHANGES))
    slowest = [max(one['table_s'], one['view_s']) for one in changes]
    yield frame.Variant(
        'patch',
        {
            'changes': len(changes),
            **{
                name: _spread([one[name] for one in changes])
                for name in ('answered_s', 'table_s', 'view_s')
            },
        },
    )
    violations = 0
    for path, texts in bench.accessibility():
        violations += len(texts)
        yield frame.Variant(
            'axe /ui' + path, {'serious': len(texts), 'violations': texts}
        )
    yield frame.Variant(
        'console', {'errors': len(bench.errors), 'texts': bench.errors}
    )
    return {
        'first_view_s_1000_hosts': round(
            max(one.interactive_s for seen in opened.values() for one in seen),
            3,
        ),
        'patch_to_screen_s': round(max(slowest), 3),
        'bundle_kb': round(
            max(one.assets_kb for one in opened['overview']), 1
        ),
        'axe_serious': violations,
        'console_errors': len(bench.errors),
    }

# SPDX-License-Identifier: Apache-2.0

"""Make the images of the documentation.

::

    python -m vsched_ui.tests.screenshots doc/source/images [--dark] [NAME]
"""

import argparse
from collections.abc import Callable
from collections.abc import Sequence
import io
import os
import pathlib
import sys
import tempfile
import threading
import time
import typing as ty

from PIL import Image

from vsched_api.db import migration
from vsched_api.tests import base as api_base
from vsched_api.tests import database_options
from vsched_ui.tests import browser
from vsched_ui.tests import fleet
from vsched_ui.tests import serving

HOSTS = 60
INSTANCES = 8
FIRST = fleet.host_name(1)
#: Colours of an image: few enough for small files.
COLOURS = 128
WIDTH, HEIGHT = 1360, 850
#: Of views whose lower parts the documentation describes as well.
HEIGHTS = {'doctor': 1100, 'error': 1220, 'host': 1210, 'overview': 1400}


def size_of(name: str) -> tuple[int, int]:
    """Return the width and the height of an image, in pixels."""
    return WIDTH, HEIGHTS.get(name, HEIGHT)


def _whatif(page: ty.Any) -> None:
    page.get_by_label('Share of a CPU for each vCPU (%)').fill('62')
    page.get_by_label('vCPUs', exact=True).fill('16')
    page.get_by_role('button', name='Evaluate').click()
    page.locator('.vs-reasons').first.wait_for()
    page.locator('.vs-reasons').nth(8).scroll_into_view_if_needed()


def _change(page: ty.Any) -> None:
    page.get_by_role('button', name='Change reservation').click()
    page.get_by_label('Share of a CPU for each vCPU (%)').fill('45')
    page.get_by_text('9 ms every 20 ms').wait_for()
    page.get_by_role('button', name='Change', exact=True).click(trial=True)
    # Its colour fades in.
    page.wait_for_timeout(1000)


def _host(page: ty.Any) -> None:
    # Once samples of instances are in the stack.
    page.locator('.vs-chart[aria-label*="-0001-"]').wait_for()


def _whole(page: ty.Any) -> None:
    # Once all pages of the list were read.
    page.get_by_text('Reading the rest').wait_for(state='detached')


def _nothing(page: ty.Any) -> None:
    """Show the view as it is."""


#: By name: a view, a text that is there once its data is, and what to do.
VIEWS: dict[str, tuple[str, str, Callable[[ty.Any], None]]] = {
    'overview': ('', 'vsched.drift.repaired', _nothing),
    'hosts': ('/hosts', FIRST, _nothing),
    'host': ('/hosts/%s' % FIRST, '-0001-01', _host),
    'error': ('/hosts/%s?tab=error' % FIRST, 'p99 of |error|', _nothing),
    'overhead': ('/hosts/%s?tab=overhead' % FIRST, 'packet sent', _nothing),
    'doctor': ('/hosts/%s?tab=doctor' % FIRST, 'can be used.', _nothing),
    'instance': (
        '/instances/%s' % fleet.instance_uuid(1, 1),
        'Wait before a run',
        _nothing,
    ),
    'change': (
        '/instances/%s' % fleet.instance_uuid(1, 3),
        'Wait before a run',
        _change,
    ),
    'reservations': ('/reservations', fleet.host_name(2), _whole),
    'whatif': (
        '/whatif?evaluated.sort=free&evaluated.dir=asc',
        'Evaluate',
        _whatif,
    ),
    'balloons': ('/balloons', 'reverted', _nothing),
    'events': ('/events', 'vsched.drift.repaired', _nothing),
    'jobs': ('/jobs', '5 of 12 points', _nothing),
    'evidence': ('/evidence', 'poor fit', _nothing),
}


def _save(page: ty.Any, path: pathlib.Path) -> None:
    with Image.open(io.BytesIO(page.screenshot())) as image:
        image.convert('RGB').quantize(COLOURS, dither=Image.Dither.NONE).save(
            path, optimize=True
        )


def _report(host: fleet.Host, stopped: threading.Event) -> None:
    while not stopped.wait(1):
        host.alive(time.time())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog='screenshots', description='Make images of the page.'
    )
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('names', nargs='*', metavar='NAME')
    parser.add_argument('--dark', action='store_true')
    options = parser.parse_args(argv)
    names = options.names or list(VIEWS)
    stopped = threading.Event()
    with tempfile.TemporaryDirectory(prefix='vsched-page-') as folder:
        conf = api_base.patient(
            database_options.configuration(
                'sqlite:///' + os.path.join(folder, 'vsched.sqlite')
            )
        )
        conf.set_override('host_down_after_s', fleet.SILENT_S // 2, 'api')
        migration.sync(conf)
        service = serving.Service(conf, HOSTS, INSTANCES, hostile=False)
        seen = browser.Browser()
        reporter = threading.Thread(
            target=_report, args=(service.hosts[0], stopped)
        )
        reporter.start()
        try:
            service.measure(FIRST)
            for name in names:
                path, text, act = VIEWS[name]
                width, height = size_of(name)
                tab = seen.tab(
                    viewport={'width': width, 'height': height},
                    color_scheme='dark' if options.dark else 'light',
                )
                tab.page.goto(service.url + '/ui' + path)
                tab.page.get_by_text(text).filter(
                    visible=True
                ).first.wait_for()
                act(tab.page)
                # Until all that the view requests is there.
                seen.expect(tab.page.locator('.vs-loading')).to_have_count(0)
                _save(tab.page, options.folder / ('page-%s.png' % name))
                for error in tab.errors:
                    print('%s: %s' % (name, error), file=sys.stderr)
                tab.close()
        finally:
            stopped.set()
            reporter.join()
            seen.close()
            service.close()
    return 0


if __name__ == '__main__':
    sys.exit(main())

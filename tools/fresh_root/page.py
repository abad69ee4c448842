# SPDX-License-Identifier: Apache-2.0

"""Find a reservation on the page, as an operator with a token does.

    page.py URL TOKEN INSTANCE SHARE

TOKEN is a file whose last line is a token; SHARE is the text of the share, as
in "30.0 %". This runs outside of the root, with the browser of the machine.
"""

import contextlib
import pathlib
import sys

from vsched_ui.tests import browser


def main(url: str, token: str, instance: str, share: str) -> None:
    """Sign in, and wait until the table has the reservation."""
    secret = pathlib.Path(token).read_text().split()[-1]
    with contextlib.closing(browser.Browser(browser.WINDOWED)) as chromium:
        with contextlib.closing(chromium.tab()) as tab:
            tab.page.goto(
                '%s/ui/reservations?reservations.q=%s' % (url, instance)
            )
            tab.page.get_by_label('Token').fill(secret)
            tab.page.get_by_role('button', name='Sign in').click()
            rows = tab.page.locator('tbody tr')
            chromium.expect(rows).to_have_count(1)
            chromium.expect(rows.locator('td[data-label=Share]')).to_have_text(
                share
            )
            chromium.expect(rows.locator('td[data-label=State]')).to_have_text(
                'applied'
            )
            if problems := tab.errors + tab.axe():
                sys.exit('page: %s' % '; '.join(problems))
    print('page: the reservation is shown with %s, applied' % share)


if __name__ == '__main__':
    main(*sys.argv[1:])

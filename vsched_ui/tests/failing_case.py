# SPDX-License-Identifier: Apache-2.0

"""Tests of the page while requests fail."""

import contextlib
import json
import re
import typing as ty

from vsched_ui.tests import browser
from vsched_ui.tests import page_case


class FailingCase(page_case.PageCase):
    """Has chosen requests answered with errors."""

    def still(self) -> browser.Tab:
        """Return a tab whose views read nothing again by themselves."""
        tab = self.chromium.tab()
        self.addCleanup(tab.close)
        tab.stop_polls()
        return tab

    def refused(self, status: int) -> ty.Callable[[ty.Any], None]:
        """Return what answers requests with a status."""
        body = {
            'errors': [
                {
                    'status': status,
                    'detail': 'as the test chose',
                    'code': 'vsched.of.the.test',
                    'request_id': 'req-of-the-test',
                }
            ]
        }

        def answer(route: ty.Any) -> None:
            route.fulfill(
                status=status,
                content_type='application/json',
                body=json.dumps(body),
            )

        return answer

    @contextlib.contextmanager
    def failing(
        self, tab: browser.Tab, status: int, *addresses: str
    ) -> ty.Iterator[None]:
        """Have requests to addresses fail meanwhile."""
        patterns = [re.compile('/v1' + one) for one in addresses]
        for pattern in patterns:
            tab.page.route(pattern, self.refused(status))
        yield
        for pattern in patterns:
            tab.page.unroute(pattern)

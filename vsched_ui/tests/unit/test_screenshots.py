# SPDX-License-Identifier: Apache-2.0

"""Each picture of the page is made by the script, and is in the docs."""

import pathlib
import re

from oslotest import base

from vsched_ui.tests import screenshots

_DOCS = pathlib.Path(__file__).parents[3] / 'doc' / 'source'


class ScreenshotsTestCase(base.BaseTestCase):
    def test_each_is_made_and_shown(self):
        made = {'page-%s.png' % name for name in screenshots.VIEWS}
        kept = {path.name for path in (_DOCS / 'images').glob('page-*.png')}
        shown = set()
        for path in _DOCS.rglob('*.rst'):
            shown.update(
                re.findall(
                    r'^\.\. image:: \S*/(page-[a-z-]+\.png)$',
                    path.read_text(),
                    re.MULTILINE,
                )
            )
        self.assertEqual((made, made), (kept, shown))

# SPDX-License-Identifier: Apache-2.0

"""The images of the page in the documentation can be made.

They are made by hand when a view has changed, and a build of the
documentation takes what is committed. Without this test, a text that is gone
from a view, or an image that nothing makes, is found no earlier than at the
next change of the images. They are not compared with those that are
committed: figures and times are of the moment, and fonts of the machine.
"""

import contextlib
import io
import pathlib
import re

import fixtures
from oslotest import base
from PIL import Image

from vsched_lib.tests import requirements
from vsched_ui.tests import browser
from vsched_ui.tests import screenshots

SOURCE = pathlib.Path(__file__).resolve().parents[3] / 'doc' / 'source'
IMAGES = SOURCE / 'images'
#: Only a hang takes as long.
PATIENCE_S = 1800

#: The part of an image below the head of the page and beside its navigation.
BODY = (300, 150, 1360, 850)
#: Tables and charts have more: the edges of their text are smoothed.
COLOURS = 64
#: Of the body at least this part is no background.
DRAWN = 0.05


def named():
    """Return the names of the images of the page in the documentation."""
    return {
        name
        for path in SOURCE.rglob('*.rst')
        for name in re.findall(
            r'^\s*\.\. (?:image|figure):: \S*\b(page-[\w-]+\.png)$',
            path.read_text(encoding='utf-8'),
            re.MULTILINE,
        )
    }


def drawn(path):
    """Return the colours of an image's body, and what is no background.

    The background is the colour that most of it has.
    """
    with Image.open(path) as image:
        body = image.convert('RGB').crop(BODY)
    pixels = body.width * body.height
    counts = [count for count, _ in body.getcolors(pixels)]
    return len(counts), 1 - max(counts) / pixels


class TestScreenshots(base.BaseTestCase):
    def test_each_image_is_one_that_is_made(self):
        made = {'page-%s.png' % name for name in screenshots.VIEWS}
        self.assertEqual(made, named())
        self.assertEqual(
            made, {path.name for path in IMAGES.glob('page-*.png')}
        )

    def test_all_images_are_made(self):
        try:
            browser.Browser().close()
        except browser.Missing as problem:
            requirements.require(self, 'chromium', str(problem))
        # Longer than a test may take by default.
        self.useFixture(fixtures.Timeout(PATIENCE_S, gentle=True))
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed):
            self.assertEqual(0, screenshots.main([str(folder)]))
        # Errors of the views.
        self.assertEqual('', printed.getvalue())
        self.assertEqual(named(), {path.name for path in folder.iterdir()})
        for name in screenshots.VIEWS:
            path = folder / ('page-%s.png' % name)
            with Image.open(path) as image:
                self.assertEqual(screenshots.size_of(name), image.size, name)
            colours, part = drawn(path)
            self.assertLessEqual(COLOURS, colours, name)
            self.assertLessEqual(DRAWN, part, name)

    def test_what_is_blank(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'x.png')
        image = Image.new('RGB', (1360, 850), 'white')
        # The page without a view.
        image.paste('black', (0, 0, 290, 850))
        image.paste('gray', (0, 0, 1360, 140))
        image.save(path)
        self.assertEqual((1, 0), drawn(path))

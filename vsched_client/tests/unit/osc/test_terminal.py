# SPDX-License-Identifier: Apache-2.0

"""Text from the API cannot act on a terminal or on a shell."""

import subprocess
import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from vsched_client.osc import terminal


class CleanTestCase(base.BaseTestCase):
    def test_what_is_shown(self):
        for text, shown in (
            ('node1', 'node1'),
            ('größe-東京-🙂', 'größe-東京-🙂'),
            ('a\x1b[2Jb', r'a\x1b[2Jb'),
            ('a\nb\tc\r', r'a\nb\tc\r'),
            ('\x9b31m', r'\x9b31m'),
            ('\u202egnp.exe', r'\u202egnp.exe'),
            ('a\u2028b', r'a\u2028b'),
            ('\x00\x7f', r'\x00\x7f'),
            ('\ud800', r'\ud800'),
        ):
            self.assertEqual(shown, terminal.clean(text))

    @given(st.text())
    def test_nothing_unsafe_is_left(self, text):
        for one in terminal.clean(text):
            self.assertNotIn(
                unicodedata.category(one), ('Cc', 'Cf', 'Cs', 'Zl', 'Zp')
            )

    def test_lines(self):
        self.assertEqual('a\n\\x1bb', terminal.clean_lines('a\n\x1bb'))

    def test_a_shell_reads_it_back(self):
        text = 'a $(exit 9) `exit 9` $HOME \\ \\\\ "b" \''
        # As cliff's formatter puts it.
        quoted = terminal.quoted(text).replace('"', '\\"')
        done = subprocess.run(
            ('sh', '-c', 'name="%s"; printf %%s "$name"' % quoted),
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual(text, done.stdout)

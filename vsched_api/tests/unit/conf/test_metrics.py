# SPDX-License-Identifier: Apache-2.0

"""The file of tokens."""

from oslotest import base

from vsched_api.conf import metrics

TOKEN = 'a' * 32


class TestTokens(base.BaseTestCase):
    def test_accepted(self):
        for text, tokens in (
            (TOKEN, (TOKEN,)),
            (TOKEN + '\n', (TOKEN,)),
            (TOKEN + '\n' + 'b' * 512 + '\n', (TOKEN, 'b' * 512)),
        ):
            self.assertEqual(tokens, metrics.parse_tokens(text))

    def test_refused(self):
        for text, word in (
            ('', '0 lines'),
            ('\n', '32 to 512'),
            ('a' * 31, '32 to 512'),
            ('a' * 513, '32 to 512'),
            ('a' * 31 + ' ', '32 to 512'),
            (TOKEN + '\r\n', '32 to 512'),
            (TOKEN + '\n\n', '32 to 512'),
            ('\N{LATIN SMALL LETTER E WITH ACUTE}' * 32, '32 to 512'),
            ('\n'.join([TOKEN] * 3), '3 lines'),
        ):
            error = self.assertRaises(ValueError, metrics.parse_tokens, text)
            self.assertIn(word, str(error), text)
            # It is logged.
            self.assertNotIn('aaaa', str(error))

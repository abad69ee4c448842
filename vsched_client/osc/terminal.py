# SPDX-License-Identifier: Apache-2.0

"""Makes text from the API safe for a terminal and for a shell.

Names of hosts and servers are data. Escape sequences and characters that
change the direction or the place of others are shown, not sent.
"""

import unicodedata

#: Categories of Unicode: control, format, surrogate, private use,
#: unassigned, and separators of lines and paragraphs.
_UNSAFE = frozenset({'Cc', 'Cf', 'Cs', 'Co', 'Cn', 'Zl', 'Zp'})


def clean(text: str) -> str:
    """Return a text with each unsafe character as its escape, as in ``\\x1b``.

    Line feeds are escaped too.
    """
    if text.isascii() and text.isprintable():
        return text
    return ''.join(
        one.encode('unicode_escape').decode('ascii')
        if unicodedata.category(one) in _UNSAFE
        else one
        for one in text
    )


def clean_lines(text: str) -> str:
    """Return the same, with line feeds as they are."""
    return '\n'.join(map(clean, text.split('\n')))


def quoted(text: str) -> str:
    """Return a text for between double quotes of a POSIX shell.

    The double quotes in it are left to cliff's formatter.
    """
    for one in '\\$`':
        text = text.replace(one, '\\' + one)
    return text

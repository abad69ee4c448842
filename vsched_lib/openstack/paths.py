# SPDX-License-Identifier: Apache-2.0

"""Paths of URLs."""

import urllib.parse


def of(*segments: str) -> str:
    """The path with these segments, whatever characters they have.

    :raises ValueError: when no quoting keeps one of them a segment.
    """
    for text in segments:
        if text in ('', '.', '..'):
            raise ValueError('%r is no segment of a path' % text)
    return '/' + '/'.join(
        urllib.parse.quote(text, safe=':') for text in segments
    )

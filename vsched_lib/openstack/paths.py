# SPDX-License-Identifier: Apache-2.0

"""Build paths of URLs."""

import urllib.parse


def of(*segments: str) -> str:
    """Return the path of these segments, quoted.

    :raises ValueError: when a segment cannot be quoted, such as ``..``.
    """
    for text in segments:
        if text in ('', '.', '..'):
            raise ValueError('%r is no segment of a path' % text)
    return '/' + '/'.join(
        urllib.parse.quote(text, safe=':') for text in segments
    )

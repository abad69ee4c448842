# SPDX-License-Identifier: Apache-2.0

"""What the documentation tells operators to run or to write."""

import os
import re

_SOURCE = os.path.abspath(
    os.path.join(os.path.dirname(__file__), '..', '..', 'doc', 'source')
)


def block(page: str, name: str) -> str:
    """The content of a named code block.

    :param page: below ``doc/source``.
    :param name: its ``:name:``.
    :raises LookupError: when there is none.
    """
    with open(os.path.join(_SOURCE, page), encoding='utf-8') as file:
        text = file.read()
    found = re.search(
        r'^\.\. code-block:: \w+\n   :name: %s\n\n((?:   .*\n|\n)+)'
        % re.escape(name),
        text,
        re.MULTILINE,
    )
    if found is None:
        raise LookupError('%s has no code block named %s' % (page, name))
    return re.sub('^   ', '', found[1], flags=re.MULTILINE).strip() + '\n'

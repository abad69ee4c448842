# SPDX-License-Identifier: Apache-2.0

"""The open files of this process."""

import contextlib
import os


def links(prefix: str) -> list[str]:
    """Return what descriptors refer to, as far as it begins so.

    Their total number is no measure: other threads, and objects that are
    still to be collected, have files of other kinds.

    :param prefix: a folder, or a kind as in proc(5): ``socket:``.
    :returns: one for each descriptor, in order.
    """
    found = []
    for number in os.listdir('/proc/self/fd'):
        # The folder itself was open, and others may be closed meanwhile.
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink('/proc/self/fd/' + number))
    return sorted(link for link in found if link.startswith(prefix))

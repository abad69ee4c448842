# SPDX-License-Identifier: Apache-2.0

"""What the nouns share."""

from collections.abc import Sequence

from vsched_client import adapter


class Noun:
    """The requests of one noun.

    :param api: sends them.
    """

    def __init__(self, api: adapter.Adapter) -> None:
        self._api = api


def repeated(words: Sequence[str]) -> list[str] | None:
    """Return a parameter that may be given repeatedly; None without any."""
    return list(words) or None

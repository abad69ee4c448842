# SPDX-License-Identifier: Apache-2.0

"""What the nouns share."""

from collections.abc import Sequence
import typing as ty

from vsched_client import adapter


class Author(ty.TypedDict):
    """Who set an override or an order, and when."""

    user_id: str | None
    project_id: str | None
    request_id: str | None
    created_at: str | None
    updated_at: str | None


class Noun:
    """The requests of one noun.

    :param api: sends them.
    """

    def __init__(self, api: adapter.Adapter) -> None:
        self._api = api


def sorted_by(key: str | None, descending: bool) -> dict[str, str | None]:
    """Return the parameters for the order of a list.

    :param key: None for the API's own.
    """
    return {'sort_key': key, 'sort_dir': 'desc' if descending else None}


def repeated(words: Sequence[str]) -> list[str] | None:
    """Return a parameter that may be given repeatedly; None without any."""
    return list(words) or None

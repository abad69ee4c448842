# SPDX-License-Identifier: Apache-2.0

"""What a request for instances of a flavor needs of a host."""

from collections.abc import Mapping
import functools

from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import placement
from vsched_lib.contract import spec_values
from vsched_lib.model import fit


class FlavorRequest:
    """What an instance of one flavor needs of a host.

    There is one object per flavor, hashed by identity: hosts cache what the
    flavor needs of them by it.

    :param claimed_mcpu: what the flavor claims of the host in placement.
    """

    __slots__ = ('ask', 'asking', 'claimed_mcpu')

    def __init__(self, ask: fit.Ask, claimed_mcpu: int = 0) -> None:
        self.ask = ask
        self.claimed_mcpu = claimed_mcpu
        self.asking = fit.Asking(ask)


class InvalidRequest(Exception):
    """The extra specs are wrong, or contradict each other."""


def parse(specs: Mapping[str, str] | None, vcpus: int) -> FlavorRequest | None:
    """Return what a flavor needs of a host.

    Nova checks no rules between keys, and below microversion 2.86 nothing
    at all: the extra specs may be invalid.

    :param specs: the flavor's extra specs.
    :returns: None when no extra spec is of vsched.
    :raises InvalidRequest: when an extra spec is invalid.
    """
    own = tuple(
        sorted(
            item
            for item in (specs or {}).items()
            if item[0].startswith(spec_values.PREFIX)
        )
    )
    if not own:
        return None
    found = _parse(own, vcpus, placement.claimed_mcpu(specs or {}))
    if isinstance(found, str):
        raise InvalidRequest(found)
    return found


# Returns the error: lru_cache does not cache exceptions.
@functools.lru_cache(maxsize=1024)
def _parse(
    own: tuple[tuple[str, str], ...], vcpus: int, claimed_mcpu: int
) -> FlavorRequest | str:
    try:
        return FlavorRequest(
            extra_specs.parse(dict(own)).ask(vcpus), claimed_mcpu
        )
    except errors.InvalidExtraSpecs as problem:
        return problem.detail

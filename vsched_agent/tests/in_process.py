# SPDX-License-Identifier: Apache-2.0

"""Privileged entrypoints without their helpers."""

from collections.abc import Iterator
import contextlib

from oslo_privsep import priv_context


@contextlib.contextmanager
def entrypoints(*contexts: priv_context.PrivContext) -> Iterator[None]:
    """Run the entrypoints of contexts in this process.

    :param contexts: whose entrypoints; restored on the way out.
    """
    before = [(context, context.client_mode) for context in contexts]
    for context in contexts:
        context.set_client_mode(False)
    try:
        yield
    finally:
        for context, mode in before:
            context.set_client_mode(mode)

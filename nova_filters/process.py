# SPDX-License-Identifier: Apache-2.0

"""The cache that all filters and weighers of one process share."""

import threading

from nova.conf import CONF

from nova_filters import cache
from nova_filters import conf
from nova_filters import source

# Nova gives its filters no options: they read the process-wide ones.
conf.register_opts(CONF)

_making = threading.Lock()
_made: list[cache.Cache] = []


def shared() -> cache.Cache:
    """Return the cache of this process.

    Made at the first call, when Nova has read its options.
    """
    if not _made:
        with _making:
            if not _made:
                _made.append(
                    cache.Cache(
                        lambda: source.Source(CONF),
                        CONF.vsched.refresh_interval,
                    )
                )
    return _made[0]

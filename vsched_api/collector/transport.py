# SPDX-License-Identifier: Apache-2.0

"""The bus of a collector: its threads.

Each thread that stores a batch takes memory and a connection to
the database, and Python runs one at a time. There must be enough of them for
the batches that share a transaction. While they are busy, the broker has a
number of requests ready in each process, which the next transaction stores.
"""

import typing as ty

from oslo_config import cfg

from vsched_lib.contract import rpc

#: How many threads a process has for requests at most.
THREADS = 24
#: How many requests the broker sends to a process whose threads are busy.
PREFETCHED = 24

#: By group and option of oslo.messaging, the default of a collector.
_DEFAULTS = {
    (None, 'executor_thread_pool_size'): THREADS,
    ('oslo_messaging_rabbit', 'rabbit_qos_prefetch_count'): PREFETCHED,
}


def get_transport(conf: cfg.ConfigOpts, url: str | None = None) -> ty.Any:
    """Return the bus that ``transport_url`` names.

    :param conf: the collector's own options.
    :param url: overrides the option.
    """
    # After rpc, which selects the backend of oslo.service.
    from oslo_messaging import opts

    for group, options in opts.list_opts():
        conf.register_opts(
            [one for one in options if (group, one.name) in _DEFAULTS],
            group=group,
        )
    for (group, name), value in _DEFAULTS.items():
        conf.set_default(name, value, group=group)
    return rpc.get_transport(conf, url)

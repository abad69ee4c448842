# SPDX-License-Identifier: Apache-2.0

"""The bus of a collector: no reply waits for its receiver.

A request names the queue for its reply. oslo.messaging tries for a minute to
send a reply to a queue that does not exist, in one of the threads that answer
requests. Requests with invented queues, which need no key, would keep all
threads busy. A reply that is dropped costs little: the agent sends its batch
again, and a batch is stored once.
"""

import typing as ty

from oslo_config import cfg

from vsched_lib.contract import rpc

_GROUP = 'oslo_messaging_rabbit'
_OPTION = 'kombu_missing_consumer_retry_timeout'
#: Seconds for which a reply waits for its queue, unless an operator sets the
#: option.
REPLY_WAIT_S = 0


def get_transport(conf: cfg.ConfigOpts, url: str | None = None) -> ty.Any:
    """Return the bus that ``transport_url`` names.

    :param conf: the collector's own options.
    :param url: overrides the option.
    """
    # After rpc, which selects the backend of oslo.service.
    from oslo_messaging import opts

    for group, options in opts.list_opts():
        if group == _GROUP:
            conf.register_opts(options, group=group)
    conf.set_default(_OPTION, REPLY_WAIT_S, group=_GROUP)
    return rpc.get_transport(conf, url)
